from __future__ import annotations

import json
from datetime import timedelta, timezone
from pathlib import Path

from tests.agent.store.opened import report, stored
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, SECOND, card, holder, tick


def test_one_hour_of_one_card_is_told_by_state_user_and_coverage(tmp_path: Path) -> None:
    ticks = [
        tick(MONDAY + n * 30 * SECOND, card(util_pct=90 if n < 40 else 0, holders=(holder("ada"),))) for n in range(120)
    ]
    path = stored(tmp_path / "gua.db", ticks)

    found = report(path, MONDAY, MONDAY + HOUR)

    assert found["card_s"] == {"active": 1200, "idle-held": 2400, "truly-idle": 0, "unknown": 0}
    assert found["samples"] == 120
    assert found["coverage"]["expected_card_s"] == found["coverage"]["observed_card_s"] == 3600
    (user,) = found["users"]
    assert (user["user"], user["card_s"], user["share_s"], user["shared_card_s"]) == ("ada", 3600, 3600, 0)
    assert user["idle_held_long_card_s"] == 2400
    assert user["energy_j"] == 360_000
    (hold,) = found["holds"]
    assert hold["states"]["idle-held"] == hold["idle_held_long_card_s"] == 2400
    now = found["cards"][0]["now"]
    assert now is not None
    assert now["since"] == "2026-03-02T00:20:00Z"
    assert json.dumps(found).isascii()


def test_ragged_window_equals_the_part_of_the_ticks_in_it(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [tick(MONDAY + n * 30 * SECOND, card(util_pct=50)) for n in range(120)])

    found = report(path, MONDAY + 7 * MINUTE + 10 * SECOND, MONDAY + 52 * MINUTE + 5 * SECOND)

    assert found["card_s"]["active"] == 45 * 60 - 5
    assert found["coverage"]["unobserved_card_s"] == 0


def test_history_that_begins_within_the_window_is_said_and_not_expected_before(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [tick(MONDAY + n * MINUTE, card(), cover_ms=MINUTE) for n in range(30, 60)])

    found = report(path, MONDAY, MONDAY + HOUR)

    assert found["window"]["history_begins"] == "2026-03-02T00:30:00Z"
    assert found["coverage"]["expected_card_s"] == 30 * 60


def test_hours_of_the_week_follow_a_zone_of_three_quarters_of_an_hour(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [tick(MONDAY + n * MINUTE, card(), cover_ms=MINUTE) for n in range(60)])
    kathmandu = timezone(timedelta(hours=5, minutes=45))

    found = report(path, MONDAY, MONDAY + HOUR, zone=kathmandu, zone_name="Asia/Kathmandu")

    hours = {(one["weekday"], one["hour"]): one["card_s"]["truly-idle"] for one in found["hours_of_week"]}
    assert hours == {(0, 5): 15 * 60, (0, 6): 45 * 60}


def test_a_card_met_after_the_window_is_not_in_it(tmp_path: Path) -> None:
    early = [tick(MONDAY + n * MINUTE, card(), cover_ms=MINUTE) for n in range(60)]
    late = tick(MONDAY + 2 * HOUR, card(), card("GPU-b"), cover_ms=MINUTE)
    path = stored(tmp_path / "gua.db", [*early, late])

    assert [one["uuid"] for one in report(path, MONDAY, MONDAY + HOUR)["cards"]] == ["GPU-a"]


def test_what_the_newest_tick_covers_beyond_now_is_not_counted_yet(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [tick(MONDAY, card(), cover_ms=MINUTE)])

    found = report(path, MONDAY - HOUR, MONDAY + HOUR, now_ms=MONDAY + 10 * SECOND)

    assert found["coverage"]["expected_card_s"] == found["coverage"]["observed_card_s"] == 10
