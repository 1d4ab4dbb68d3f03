"""One small history whose every figure was worked out by hand, and the whole document it makes.

Window 08:00 to 09:00 on Monday 2026-03-02, ticks each 60 s, two cards of 100 W (in the zone asked for it is 09:00):

card 0: 08:00-08:10 active, ada (2 processes) and ben share it      10 min
        08:10-08:50 idle-held, ada alone                            40 min, a long stretch
        08:50-09:00 truly idle, a display only                      10 min
card 1: 08:00-08:20 idle-held by memory that nobody accounts for    20 min, not long
        08:20-08:40 nothing: the daemon was down                    20 min unobserved (card 0 too)
        08:40-09:00 off the bus                                     20 min unknown

As the daemon was down for both, card 0's idle-held time is 08:10-08:20 and 08:40-08:50: two short stretches, so
none of it is long. To change the document: GUA_GOLDEN=write, then read the difference.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta, timezone
from pathlib import Path
from unittest import mock

import pytest
from jsonschema import Draft202012Validator

from gua.model import CardTick, ProcessType, Reason, Tick, TickStatus
from gua.report.document import Report
from gua.schemas import load_schema
from tests.agent.store.opened import report, stored
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder, tick

GOLDEN = Path(__file__).resolve().parents[2] / "data" / "report.golden.json"
EIGHT = MONDAY + 8 * HOUR


def card_0(minute: int) -> CardTick:
    ada = (holder("ada", 100, memory_mb=30_000), holder("ada", 101, memory_mb=2_000))
    ben = holder("ben", 200, memory_mb=4_000, uid=1001, name="caf\u00e9\x1b[31m")
    if minute < 10:
        return card("GPU-a", 95, (*ada, ben))
    if minute < 50:
        return card("GPU-a", 3, ada)
    return card("GPU-a", 0, (holder("gdm", 50, type=ProcessType.GRAPHICS, memory_mb=140, name="Xorg"),))


def card_1(minute: int) -> CardTick:
    if minute < 20:
        return card("GPU-b", 0, used_mb=60_000, index=1)
    return card("GPU-b", absent=Reason.CARD_LOST)


def history() -> list[Tick]:
    return [
        tick(
            EIGHT + minute * MINUTE,
            card_0(minute),
            card_1(minute),
            cover_ms=MINUTE,
            status=TickStatus.OK if minute < 20 else TickStatus.PARTIAL,
        )
        for minute in range(60)
        if not 20 <= minute < 40
    ]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = tmp_path_factory.mktemp("golden") / "gua.db"
    with mock.patch("uuid.uuid4", return_value=mock.Mock(hex="0" * 32)):
        stored(path, history(), interval_ms=MINUTE)
    return report(path, EIGHT, EIGHT + HOUR, zone=timezone(timedelta(hours=1)), zone_name="Etc/GMT-1")


def test_the_document_is_the_golden_one(found: Report) -> None:
    text = json.dumps(found, indent=1) + "\n"
    if os.environ.get("GUA_GOLDEN") == "write":
        GOLDEN.write_text(text, encoding="ascii")
    assert text == GOLDEN.read_text(encoding="ascii")


def test_the_document_obeys_its_schema(found: Report) -> None:
    Draft202012Validator(load_schema("gua.report.1")).validate(found)


def test_the_sums_are_those_worked_out_by_hand(found: Report) -> None:
    assert found["card_s"] == {"active": 600, "idle-held": 2_400, "truly-idle": 600, "unknown": 1_200}
    assert found["samples"] == 80
    assert found["coverage"] == {
        "expected_card_s": 7_200,
        "observed_card_s": 4_800,
        "unobserved_card_s": 2_400,
        "unknown_by_reason": {"card_lost": 1_200},
        "ticks": {"ok": 20, "partial": 20, "error": 0, "unresponsive": 0},
    }


def test_the_users_are_those_worked_out_by_hand(found: Report) -> None:
    ada, nobody, ben = found["users"]
    assert (ada["user"], ada["card_s"], ada["share_s"], ada["shared_card_s"]) == ("ada", 1_800, 1_500, 600)
    assert (ada["idle_held_card_s"], ada["idle_held_long_card_s"], ada["samples"]) == (1_200, 0, 30)
    assert ada["energy_j"] == 100 * 300 + 100 * 1_200
    assert (nobody["user"], nobody["user_source"], nobody["card_s"]) == ("unattributed", "unattributed", 1_200)
    assert (ben["user"], ben["card_s"], ben["share_s"], ben["energy_j"]) == ("ben", 600, 300, 30_000)


def test_the_hours_are_local_ones(found: Report) -> None:
    assert [(one["weekday"], one["hour"]) for one in found["hours_of_week"]] == [(0, 9)]
    assert found["hours_of_week"][0]["card_s"] == found["card_s"]


def test_what_is_now_is_the_newest_tick(found: Report) -> None:
    first, second = (one["now"] for one in found["cards"])
    assert first is not None
    assert (first["at"], first["state"], first["since"]) == (
        "2026-03-02T08:59:00Z",
        "truly-idle",
        "2026-03-02T08:50:00Z",
    )
    assert [(one["process"], one["type"]) for one in first["holders"]] == [("Xorg", "graphics")]
    assert second is not None
    assert (second["state"], second["reason"], second["since"]) == ("unknown", "card_lost", "2026-03-02T08:40:00Z")
    assert [one["id"] for one in found["findings"]] == ["card_lost", "unknown_high", "unobserved_high"]
