"""Other rules over the same ticks: sums, the present, holds; and what cannot be judged again is refused."""

from __future__ import annotations

import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from gua.errors import UsageError
from gua.model import DEFAULT_RULE, Tick
from gua.report.document import Report
from tests.agent.report.test_figures import RULE, _case, _far, _write
from tests.agent.store.opened import report, steady, stored
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder

STRICT = replace(DEFAULT_RULE, active_util_pct=5, held_mb=5_000)


def hour(path: Path, **more: Any) -> Report:
    return report(path, MONDAY, MONDAY + HOUR, **more)


@pytest.fixture
def worked(tmp_path: Path) -> Path:
    """30 minutes at 7 %, then 30 at 2 %; ada holds 4,000 MB all the time."""
    busy, quiet = (card(util_pct=pct, holders=(holder("ada"),)) for pct in (7, 2))
    return stored(tmp_path / "gua.db", [*steady(30, busy), *steady(30, quiet, start=30)], interval_ms=MINUTE)


def test_the_sums_follow_the_rule_and_the_document_says_which(worked: Path) -> None:
    assert hour(worked)["card_s"] == {"active": 0, "idle-held": 3600, "truly-idle": 0, "unknown": 0}
    found = hour(worked, rule=STRICT)
    assert found["card_s"] == {"active": 1800, "idle-held": 0, "truly-idle": 1800, "unknown": 0}
    assert [one["held_mb"] for one in found["rules"]] == [5_000]
    assert found["rejudged"] is True
    assert hour(worked)["rejudged"] is False


def test_people_the_present_and_holds_follow_the_rule(worked: Path) -> None:
    found = hour(worked, rule=replace(DEFAULT_RULE, active_util_pct=5))
    (ada,), (hold,), (one,) = found["users"], found["holds"], found["cards"]
    assert (ada["states"]["active"], ada["states"]["idle-held"], ada["idle_held_long_card_s"]) == (1800, 1800, 1800)
    assert (hold["states"]["active"], hold["idle_held_long_card_s"]) == (1800, 1800)
    assert one["now"] is not None
    assert (one["now"]["state"], one["now"]["since"]) == ("idle-held", "2026-03-02T00:30:00Z")
    stored_now = hour(worked)["cards"][0]["now"]
    assert stored_now is not None
    assert stored_now["since"] == "2026-03-02T00:00:00Z"


def test_a_state_that_stands_for_days_is_followed_back_to_its_beginning(tmp_path: Path) -> None:
    ticks = [*steady(10, card(util_pct=50)), *steady(20 * 60, card(), start=10)]
    path = stored(tmp_path / "gua.db", ticks, interval_ms=MINUTE)
    end = MONDAY + 1210 * MINUTE
    one = report(path, end - HOUR, end, rule=STRICT)["cards"][0]["now"]
    assert one is not None
    assert one["since"] == "2026-03-02T00:10:00Z"


def test_a_stretch_that_began_before_the_window_is_long_within_it(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(60, card(holders=(holder(),))), interval_ms=MINUTE)
    found = report(path, MONDAY + 50 * MINUTE, MONDAY + HOUR, rule=DEFAULT_RULE)
    assert found["users"][0]["idle_held_long_card_s"] == 600


def test_beyond_the_oldest_raw_tick_it_refuses_and_names_it(worked: Path) -> None:
    connection = sqlite3.connect(worked)
    connection.execute("UPDATE store SET raw_since_ms = ?", (MONDAY + 15 * MINUTE,))
    connection.commit()
    connection.close()
    for option in ({"rule": STRICT}, {"sensitivity": True}):
        with pytest.raises(UsageError, match="2026-03-02T00:15:00Z"):
            hour(worked, **option)
    assert report(worked, MONDAY + 15 * MINUTE, MONDAY + HOUR, rule=STRICT)["card_s"]["active"] == 900


def test_sensitivity_is_the_headline_under_nine_rules(worked: Path) -> None:
    found = {
        (one["rule"]["active_util_pct"], one["rule"]["held_mb"]): one["card_s"]
        for one in hour(worked, sensitivity=True)["sensitivity"]
    }
    assert sorted(found) == [(pct, mb) for pct in (5, 10, 20) for mb in (0, 100, 500)]
    assert {pct: found[pct, 100]["active"] for pct in (5, 10, 20)} == {5: 1800, 10: 0, 20: 0}
    assert all(sum(states.values()) == 3600 for states in found.values())


def test_a_card_met_after_the_window_is_not_in_it(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(2, card()), interval_ms=MINUTE)
    assert report(path, MONDAY - 3 * MINUTE, MONDAY - 2 * MINUTE, rule=STRICT, now_ms=MONDAY + HOUR)["cards"] == []


def steady_only(ticks: list[Tick]) -> bool:
    return all(before.ts_ms < after.ts_ms < before.ts_ms + HOUR for before, after in zip(ticks, ticks[1:]))


@settings(max_examples=40, deadline=None)
@given(_case())
def test_judged_again_by_the_same_rule_nothing_changes(case: tuple[list[Tick], list[int], int, int]) -> None:
    ticks, cuts, since_s, until_s = case
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gua.db"
        _write(path, ticks, cuts)
        window = (since_s * 1000, until_s * 1000)
        if until_s - since_s > 48 * 3600:
            return  # the stored sums answer for whole slots then
        asked = ({}, {"rule": RULE, "sensitivity": True})
        before, after = (report(path, *window, now_ms=_far(ticks, until_s), **more) for more in asked)
    for name in ("window", "coverage", "card_s", "samples", "hours_of_week", "intervals_s"):
        assert after[name] == before[name]  # type: ignore[literal-required]
    assert [one["now"] for one in after["cards"]] == [one["now"] for one in before["cards"]]
    same = (RULE.active_util_pct, RULE.held_mb)
    for one in after["sensitivity"]:
        if (one["rule"]["active_util_pct"], one["rule"]["held_mb"]) == same:
            assert one["card_s"] == before["card_s"]
    assert people(after) == people(before)
    if steady_only(ticks):
        assert long_time(after) == long_time(before)


def long_time(document: Report) -> dict[str, float]:
    return {one["user"]: one["idle_held_long_card_s"] for one in document["users"] if one["idle_held_long_card_s"]}


def people(document: Report) -> dict[str, tuple[Any, ...]]:
    names = ("card_s", "share_s", "shared_card_s", "states", "samples", "cards")
    return {
        one["user"]: tuple(one[name] for name in names)  # type: ignore[literal-required]
        for one in document["users"]
        if one["card_s"] or one["samples"]
    }
