"""The timeline of each card: bounded, and complete."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gua.model import DEFAULT_RULE
from gua.store.steps import MOST_STEPS, step_slots
from tests.agent.store.opened import report, steady, stored
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder


@given(st.integers(1, 4 * 24 * 366 * 20))
def test_there_are_never_more_steps_than_a_picture_shows(slots: int) -> None:
    step = step_slots(slots)
    assert 1 <= -(-slots // step) <= MOST_STEPS


def test_a_day_is_told_by_quarter_hours_and_a_week_by_hours() -> None:
    assert [step_slots(24 * 4 * days) for days in (1, 2, 7, 30, 365)] == [1, 1, 4, 16, 192]


def test_steps_hold_what_was_seen_and_what_was_not(tmp_path: Path) -> None:
    ticks = [*steady(15, card(util_pct=90)), *steady(20, card(holders=(holder(),)), start=30)]
    path = stored(tmp_path / "gua.db", ticks, interval_ms=MINUTE)
    found = report(path, MONDAY, MONDAY + HOUR, timeline=True)["timeline"]
    assert (found["since"], found["step_s"]) == ("2026-03-02T00:00:00Z", 900)
    (one,) = found["cards"]
    assert one["steps"] == [
        [900, 0, 0, 0, 0],
        [0, 0, 0, 0, 900],
        [0, 900, 0, 0, 0],
        [0, 300, 0, 0, 600],
    ]


def test_steps_before_a_card_was_met_and_after_now_are_not_expected(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(15, card(), start=20), interval_ms=MINUTE)
    found = report(path, MONDAY, MONDAY + HOUR, now_ms=MONDAY + 40 * MINUTE, timeline=True)["timeline"]
    assert [sum(step) for step in found["cards"][0]["steps"]] == [0, 600, 600]


def test_steps_of_a_report_add_up_to_its_card(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(600, card(util_pct=50)), interval_ms=MINUTE)
    document = report(path, MONDAY, MONDAY + 10 * HOUR, timeline=True)
    assert sum(step[0] for step in document["timeline"]["cards"][0]["steps"]) == document["card_s"]["active"]


def test_the_timeline_follows_another_rule(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(60, card(util_pct=7)), interval_ms=MINUTE)
    other = replace(DEFAULT_RULE, active_util_pct=5)
    found = report(path, MONDAY, MONDAY + HOUR, timeline=True, rule=other)["timeline"]
    assert found["cards"][0]["steps"] == [[900, 0, 0, 0, 0]] * 4


def test_only_who_asks_gets_a_timeline(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(5, card()))
    assert "timeline" not in report(path, MONDAY, MONDAY + HOUR)
