from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

import pytest

from gua.model import DEFAULT_RULE, Reason
from tests.agent.store.opened import report, steady, stored, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder, tick


def found(path: Path, **more: Any) -> dict[str, str]:
    document = report(path, MONDAY, MONDAY + HOUR, **more)
    return {one["id"]: one["severity"] for one in document["findings"]}


def text_of(path: Path, name: str, **more: Any) -> str:
    document = report(path, MONDAY, MONDAY + HOUR, **more)
    (text,) = [one["text"] for one in document["findings"] if one["id"] == name]
    return text


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    return stored(tmp_path / "gua.db", steady(60, card()))


def test_a_healthy_host_has_nothing_to_say(healthy: Path) -> None:
    assert found(healthy) == {}


def test_data_older_than_three_intervals_is_stale(healthy: Path) -> None:
    newest = MONDAY + 59 * MINUTE
    assert found(healthy, now_ms=newest + 3 * MINUTE) == {}
    assert found(healthy, now_ms=newest + 3 * MINUTE + 1) == {"stale": "warn"}
    assert "2 h 59 min old" in text_of(healthy, "stale", now_ms=newest + 179 * MINUTE)


def test_a_newest_tick_in_the_future_points_at_the_clock(healthy: Path) -> None:
    assert found(healthy, now_ms=MONDAY + 20 * MINUTE) == {"clock": "warn"}


def test_an_empty_database_says_that_nothing_was_recorded(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db"):
        pass
    document = report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)
    assert [one["id"] for one in document["findings"]] == ["no_history"]
    assert (document["cards"], document["window"]["history_begins"]) == ([], None)
    assert len(document["rules"]) == 1
    assert document["intervals_s"] == [30]


@pytest.mark.parametrize("reason", [Reason.CARD_LOST, Reason.CARD_MISSING])
def test_a_card_that_is_away_now_is_named(tmp_path: Path, reason: Reason) -> None:
    ticks = [*steady(59, card(), card("GPU-b", index=1)), *steady(1, card(), card("GPU-b", absent=reason), start=59)]
    path = stored(tmp_path / "gua.db", ticks)
    assert found(path) == {reason.value: "fail"}
    assert text_of(path, reason.value).startswith("card 1 (NVIDIA A100, GPU-b) ")


@pytest.mark.parametrize("reason", [Reason.DRIVER, Reason.UNRESPONSIVE])
def test_a_driver_that_is_away_is_told_once_for_all_cards(tmp_path: Path, reason: Reason) -> None:
    away = [card(f"GPU-{n}", absent=reason) for n in range(8)]
    ticks = [*steady(59, *(card(f"GPU-{n}") for n in range(8))), *steady(1, *away, start=59)]
    assert found(stored(tmp_path / "gua.db", ticks)) == {reason.value: "fail"}


@pytest.mark.parametrize(("minutes", "said"), [(3, False), (4, True)])
def test_much_unknown_time_is_told_with_its_main_reason(tmp_path: Path, minutes: int, said: bool) -> None:
    unknown = card(util_pct=None)
    ticks = [*steady(minutes, unknown), *steady(60 - minutes, card(), start=minutes)]
    path = stored(tmp_path / "gua.db", ticks)
    assert ("unknown_high" in found(path)) is said
    if said:
        assert text_of(path, "unknown_high").endswith("because: utilisation could not be read")


@pytest.mark.parametrize(("minutes", "said"), [(6, False), (7, True)])
def test_much_unobserved_time_is_told(tmp_path: Path, minutes: int, said: bool) -> None:
    ticks = [*steady(1, card()), *steady(59 - minutes, card(), start=1 + minutes)]
    assert ("unobserved_high" in found(stored(tmp_path / "gua.db", ticks))) is said


def test_an_unknown_zone_is_told_and_there_are_no_hours(healthy: Path) -> None:
    zone: Optional[Any] = None
    document = report(healthy, MONDAY, MONDAY + HOUR, zone=zone, zone_name="Mars/Olympus")
    assert [(one["id"], one["severity"]) for one in document["findings"]] == [("tz_unknown", "info")]
    assert document["hours_of_week"] == []


def test_holds_beyond_the_limit_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gua.report.material.HOLDS_SHOWN", 3)
    crowd = tuple(holder(f"user{pid}", pid) for pid in range(1, 6))
    path = stored(tmp_path / "gua.db", steady(60, card(util_pct=50, holders=crowd)))
    assert text_of(path, "holds_left_out") == "2 further holds are not listed"


def test_a_single_sample_of_an_hour_ago_is_stale_though_no_interval_is_known(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db", interval_ms=0) as writer:
        writer.write_tick(tick(MONDAY, card(), cover_ms=0))
    found = {minutes: report(tmp_path / "gua.db", MONDAY - HOUR, MONDAY + minutes * MINUTE) for minutes in (10, 60)}
    stale = {minutes: [one["id"] for one in document["findings"]].count("stale") for minutes, document in found.items()}
    assert stale == {10: 0, 60: 1}


def test_a_card_that_works_for_nobody_is_told_and_nobody_is_charged(tmp_path: Path) -> None:
    ghost = card(util_pct=97, used_mb=4)
    path = stored(
        tmp_path / "gua.db", [*steady(20, card()), *steady(10, ghost, start=20), *steady(30, card(), start=30)]
    )
    document = report(path, MONDAY, MONDAY + HOUR)
    (finding,) = document["findings"]
    assert (finding["id"], finding["severity"], finding["card"]) == ("ghost", "warn", "GPU-a")
    assert "97 % utilisation for 10 min from 2026-03-02T00:20:00Z" in finding["text"]
    assert document["users"] == []
    assert document["cards"][0]["active_unheld_s"] == 600


@pytest.mark.parametrize(
    "busy",
    [card(util_pct=97, holders=(holder(),)), card(util_pct=97, used_mb=9_000), card(util_pct=97, lists_known=False)],
    ids=["a holder", "memory in use", "lists that could not be read"],
)
def test_work_that_leaves_traces_is_no_ghost(tmp_path: Path, busy: Any) -> None:
    assert "ghost" not in found(stored(tmp_path / "gua.db", steady(60, busy)))


@pytest.mark.parametrize(("minutes", "told"), [(9, False), (10, True)])
def test_a_ghost_needs_ten_minutes_without_a_break(tmp_path: Path, minutes: int, told: bool) -> None:
    ghost = card(util_pct=97, used_mb=4)
    ticks = [*steady(minutes, ghost), *steady(1, card(), start=minutes), *steady(5, ghost, start=minutes + 1)]
    assert ("ghost" in found(stored(tmp_path / "gua.db", ticks))) is told


def test_a_pause_is_told_loudly_while_it_lasts_and_softly_after(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(30, card()))
    with writing(path) as writer:
        writer.begin_pause(MONDAY + 30 * MINUTE)
    document = report(path, MONDAY, MONDAY + 31 * MINUTE)
    assert document["host"]["paused"] is True
    assert [one["id"] for one in document["findings"]] == ["paused"]
    with writing(path) as writer:
        writer.end_pause(MONDAY + 36 * MINUTE)
        for one in steady(24, card(), start=36):
            writer.write_tick(one)
    assert report(path, MONDAY, MONDAY + HOUR)["host"]["paused"] is False
    assert "for 6 min in this window" in text_of(path, "was_paused")


def test_a_clock_that_was_set_back_is_told_with_how_far(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [*steady(60, card()), *steady(1, card(), start=55)])
    assert found(path)["clock_set_back"] == "warn"
    assert "once in this window, by up to 4 min" in text_of(path, "clock_set_back")


def test_more_than_one_rule_is_told(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(30, card()))
    stored(path, steady(30, card(), start=30), rule=replace(DEFAULT_RULE, active_util_pct=20))
    assert found(path) == {"rules_differ": "info"}


def test_a_retired_card_is_told(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(60, card(), card("GPU-b", index=1)))
    with writing(path) as writer:
        writer.retire_card("GPU-b", MONDAY + 50 * MINUTE)
    assert "card 1 (NVIDIA A100, GPU-b) was retired 2026-03-02T00:50:00Z" in text_of(path, "retired")
