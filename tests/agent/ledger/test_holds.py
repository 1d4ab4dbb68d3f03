"""The ledger of holds: a small history worked out by hand, and what must hold for any history.

Monday 08:00 to 09:00, a tick each minute, card 0 (GPU-a) and card 1 (GPU-b):

08:00-08:10  card 0 at 90 %, ada (pid 100: 30,000 MB) and ben (pid 200: 4,000 MB)
08:10-08:50  card 0 at 2 %, ada alone, 20,000 MB from 08:20 on; Xorg draws on it all the hour
08:50-09:00  card 0 at 0 %, only Xorg
08:00-09:00  card 1 at 0 %, cat (container, 1,000 MB), its lists unreadable 08:30-08:40
"""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from gua.errors import UsageError
from gua.ledger import document
from gua.ledger.document import Holds
from gua.ledger.holds import Wanted, build_holds
from gua.ledger.page import render_md, render_text
from gua.ledger.render_holds import holds_page, render_csv
from gua.model import DEFAULT_RULE, Holder, ProcessType, Tick, UserSource
from gua.schemas import load_schema
from gua.store.database import open_reader
from tests.agent.store.histories import History, with_window
from tests.agent.store.opened import report, stored
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder, tick

GOLDEN = Path(__file__).resolve().parents[2] / "data" / "holds.golden.json"
EIGHT, NINE = MONDAY + 8 * HOUR, MONDAY + 9 * HOUR
XORG = holder("root", 50, type=ProcessType.GRAPHICS, memory_mb=96, name="Xorg", source=UserSource.SYSTEM, uid=0)


def contained(user: str, pid: int) -> Holder:
    one = holder(user, pid, memory_mb=1_000, source=UserSource.CONTAINER, uid=None, name="caf\u00e9\x1b[31m")
    return replace(one, identity=replace(one.identity, container_id="ab12cd34ef56" * 4, mount_hint="/home/cat"))


def history() -> list[Tick]:
    ticks = []
    for minute in range(60):
        ada = holder("ada", 100, memory_mb=30_000 if minute < 20 else 20_000)
        first = (ada, holder("ben", 200, uid=1001), XORG) if minute < 10 else (ada, XORG) if minute < 50 else (XORG,)
        pct = 90 if minute < 10 else 2 if minute < 50 else 0
        cat = card("GPU-b", 0, (contained("container:ab12", 300),), index=1, lists_known=not 30 <= minute < 40)
        ticks.append(tick(EIGHT + minute * MINUTE, card("GPU-a", pct, first), cat, cover_ms=MINUTE))
    return ticks


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with mock.patch("uuid.uuid4", return_value=mock.Mock(hex="0" * 32)):
        return stored(tmp_path_factory.mktemp("ledger") / "gua.db", history(), interval_ms=MINUTE)


def ledger(path: Path, since_ms: int = EIGHT, until_ms: int = NINE, **wanted: Any) -> Holds:
    asked = {"since_ms": since_ms, "until_ms": until_ms, "now_ms": until_ms}
    return build_holds(lambda: open_reader(path), Wanted(**wanted), **asked, zone_name="UTC")


def by_user(found: Holds) -> dict[str, Any]:
    return {one["user"]: one for one in found["holds"]}


def test_the_document_is_the_golden_one_and_obeys_its_schema(path: Path) -> None:
    found = ledger(path)
    text = json.dumps(found, indent=1) + "\n"
    if os.environ.get("GUA_GOLDEN") == "write":
        GOLDEN.write_text(text, encoding="ascii")
    assert text == GOLDEN.read_text(encoding="ascii")
    Draft202012Validator(load_schema("gua.holds.1")).validate(found)


@pytest.mark.parametrize(
    ("definition", "shape"),
    [
        ("ledger_host", document.LedgerHost),
        ("ledger_window", document.LedgerWindow),
        ("ledger_card", document.LedgerCard),
        ("asked", document.Asked),
        ("ledger_hold", document.LedgerHold),
    ],
)
def test_the_schema_describes_the_fields_of_the_type(definition: str, shape: Any) -> None:
    found = load_schema("gua.holds.1")["$defs"][definition]
    assert set(found["properties"]) == set(found["required"]) == set(shape.__annotations__)


def test_the_figures_are_those_worked_out_by_hand(path: Path) -> None:
    found = by_user(ledger(path))
    ada, ben, cat = found["ada"], found["ben"], found["container:ab12"]
    assert ada["states"] == {"active": 600, "idle-held": 2_400, "truly-idle": 0, "unknown": 0}
    assert (ada["card_s"], ada["idle_held_share"], ada["longest_idle_s"]) == (3_000, 0.8, 2_400)
    assert ada["idle_held_long_card_s"] == 2_400
    assert ada["card_util_pct"] == round((600 * 90 + 2_400 * 2) / 3_000, 1)
    assert (ada["memory_mb"], ada["memory_peak_mb"]) == (20_000, 30_000)
    assert (ada["since"], ada["until"]) == ("2026-03-02T08:00:00Z", "2026-03-02T08:50:00Z")
    assert (ben["card_s"], ben["idle_held_share"], ben["longest_idle_s"]) == (600, 0, 0)
    # While the lists could not be read nobody was charged, and the two half hours are two stretches.
    assert (cat["card_s"], cat["longest_idle_s"], cat["until"], cat["listed_now"]) == (3_000, 1_800, None, True)
    assert (cat["container_id"], cat["mounts"], cat["sm_util_pct"]) == ("ab12cd34ef56" * 4, "/home/cat", None)


def test_the_worst_comes_first_and_processes_that_only_draw_only_when_asked_for(path: Path) -> None:
    assert [one["user"] for one in ledger(path)["holds"]] == ["ada", "container:ab12", "ben"]
    everything = ledger(path, graphics=True)["holds"]
    assert {one["user"]: one["type"] for one in everything}["root"] == "graphics"


def test_figures_are_those_of_the_window_asked_not_of_the_holds_life(path: Path) -> None:
    ada = by_user(ledger(path, EIGHT + 5 * MINUTE, EIGHT + 30 * MINUTE))["ada"]
    assert ada["states"] == {"active": 300, "idle-held": 1_200, "truly-idle": 0, "unknown": 0}
    assert (ada["longest_idle_s"], ada["memory_peak_mb"], ada["figures"]) == (1_200, 30_000, "window")
    late = by_user(ledger(path, EIGHT + 30 * MINUTE, NINE))["ada"]
    assert (late["card_s"], late["memory_peak_mb"]) == (1_200, 20_000)


def test_only_holds_that_were_asked_for(path: Path) -> None:
    assert set(by_user(ledger(path, user="ben"))) == {"ben"}
    assert set(by_user(ledger(path, card="1"))) == {"container:ab12"}
    assert set(by_user(ledger(path, card="GPU-a"))) == {"ada", "ben"}
    assert set(by_user(ledger(path, min_ms=20 * MINUTE))) == {"ada", "container:ab12"}
    assert set(by_user(ledger(path, now=True))) == {"container:ab12"}
    with pytest.raises(UsageError, match=r"no such card; this history has 0 GPU-a, 1 GPU-b"):
        ledger(path, card="7")


def test_other_rules_judge_the_raw_ticks_again(path: Path) -> None:
    strict = by_user(ledger(path, rule=replace(DEFAULT_RULE, held_mb=25_000)))
    assert strict["ada"]["states"] == {"active": 600, "idle-held": 600, "truly-idle": 1_800, "unknown": 0}
    assert strict["ada"]["idle_held_long_card_s"] == 0
    found = ledger(path, rule=replace(DEFAULT_RULE, held_mb=25_000))
    assert (found["rejudged"], [one["held_mb"] for one in found["rules"]]) == (True, [25_000])


def test_a_hold_still_holds_only_where_a_fresh_tick_listed_it(path: Path) -> None:
    assert "still holds" in render_text(holds_page(ledger(path)))
    old = build_holds(
        lambda: open_reader(path),
        Wanted(now=True),
        since_ms=EIGHT,
        until_ms=NINE + HOUR,
        now_ms=NINE + HOUR,
        zone_name="UTC",
    )
    text = render_text(holds_page(old))
    assert old["stale"] is True
    assert "still holds" not in text
    assert "STALE" in text
    assert "? 03-02 09:00" in text


def test_what_is_left_of_a_hold_whose_raw_ticks_are_gone_is_said_to_be_its_whole_life(
    path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "gua.db"
    copy.write_bytes(path.read_bytes())
    connection = sqlite3.connect(copy)
    connection.execute("UPDATE store SET raw_since_ms = ?", (EIGHT + 20 * MINUTE,))
    connection.commit()
    connection.close()
    ada = by_user(ledger(copy, EIGHT + 5 * MINUTE))["ada"]
    assert (ada["figures"], ada["card_s"], ada["longest_idle_s"], ada["card_util_pct"]) == ("life", 3_000, None, None)
    assert by_user(ledger(copy, EIGHT + 20 * MINUTE))["ada"]["figures"] == "window"
    text = render_text(holds_page(ledger(copy, EIGHT + 5 * MINUTE)))
    assert "0.83*" in text
    assert "whole life" in text
    with pytest.raises(UsageError, match="2026-03-02T08:20:00Z"):
        ledger(copy, EIGHT + 5 * MINUTE, rule=DEFAULT_RULE)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_text_fits_its_columns_and_shows_no_control_character(path: Path, width: int) -> None:
    text = render_text(holds_page(ledger(path)), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert "mounts /home/cat (a hint, no charge)" in " ".join(text.split())
    assert render_text(holds_page(ledger(path)), width=width, unicode=False).isascii()


def test_csv_has_one_row_for_each_hold_and_markdown_escapes_names(path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(render_csv(ledger(path)))))
    assert [(row["user"], row["card_s"], row["idle_held_s"], row["sm_util_pct"]) for row in rows] == [
        ("ada", "3000.0", "2400.0", ""),
        ("container:ab12", "3000.0", "3000.0", ""),
        ("ben", "600.0", "0.0", ""),
    ]
    assert "caf\u00e9\\\\x1b\\[31m" in render_md(holds_page(ledger(path)))


def test_an_empty_ledger_says_so(path: Path) -> None:
    found = ledger(path, user="nobody-here")
    assert found["holds"] == []
    assert "No such hold was seen in this window." in render_text(holds_page(found))
    with pytest.raises(UsageError, match="empty"):
        ledger(path, NINE, EIGHT)


@settings(max_examples=15, deadline=None)
@given(with_window(retirements=False))
def test_of_a_user_with_one_hold_the_ledger_says_what_the_report_says(case: tuple[History, int, int]) -> None:
    """Card time by state, and what of it is long, of every user who has one process on one card only.

    Where no clock is set back: then a hold begins after some of its ticks, and its life says nothing of windows.
    """
    found, since_s, until_s = case
    found = replace(found, ticks=sorted(found.ticks, key=lambda one: one.ts_ms))
    if until_s - since_s > 48 * 3600:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = found.write(Path(folder) / "gua.db")
        now_ms = max(found.end_ms, until_s * 1000)
        asked = {"since_ms": since_s * 1000, "until_ms": until_s * 1000, "now_ms": now_ms}
        holds = build_holds(lambda: open_reader(path), Wanted(), **asked, zone_name="UTC")["holds"]
        document = report(path, since_s * 1000, until_s * 1000, now_ms=now_ms)
    for user in document["users"]:
        own = [one for one in holds if one["user"] == user["user"]]
        if len(own) == 1:
            assert own[0]["states"] == user["states"]
            assert own[0]["idle_held_long_card_s"] == user["idle_held_long_card_s"]
