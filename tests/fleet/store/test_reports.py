"""Reports from the store: the agents' own figures, to the millisecond, for any history and any window."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gua.coverage import SLOT_MS, slot_ceil, slot_floor
from gua.export import stream
from gua.units import to_iso
from gua_fleet.store.check import check_store
from gua_fleet.store.reports import stored_reports
from gua_fleet.store.session import Session
from tests.agent.export.exporting import export
from tests.agent.store.histories import MANY, History, histories
from tests.agent.store.opened import steady, stored
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder, tick
from tests.fleet.store.pulling import pull
from tests.fleet.store.reported import figures, from_agents, from_store, holds, new_store, question, take

DAY_MS = 86_400_000
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns")


@st.composite
def windows(draw: Any) -> tuple[History, int, int, str]:
    """A host's history, a window around some of it, short or months long, and a zone."""
    history = draw(histories())
    middle_s = draw(st.sampled_from(history.ticks)).ts_ms // 1000
    lengths_s = [10, 3_000, 40 * 3_600, 3 * 86_400, 70 * 86_400]
    since_s = middle_s - draw(st.integers(0, draw(st.sampled_from(lengths_s))))
    until_s = middle_s + draw(st.integers(1, draw(st.sampled_from(lengths_s))))
    return history, since_s * 1000, until_s * 1000, draw(st.sampled_from(ZONES))


@settings(max_examples=12 * MANY, deadline=timedelta(seconds=60))
@given(windows(), st.integers(0, 6_000))
def test_store_says_what_the_agents_say_themselves(case: tuple[History, int, int, str], cut: int) -> None:
    """A second host has the begin of the same history, so that their rows lie beside each other. The first pull of each
    is cut somewhere.
    """
    history, since_ms, until_ms, tz = case
    begin = History(history.ticks[: len(history.ticks) // 2 + 1])
    with tempfile.TemporaryDirectory() as folder, new_store(Path(folder) / "fleet.db") as session:
        paths = {name: one.write(Path(folder) / f"{name}.db") for name, one in (("a", history), ("b", begin))}
        for name, path in paths.items():
            take(session, name, path, cut=cut)
            take(session, name, path)
        asked = question(since_ms, until_ms, history.end_ms + DAY_MS, tz)
        here, live = from_store(session, list(paths), asked), from_agents(paths, asked)
        assert figures(here) == figures(live)
        assert holds(here, here) == holds(live, here)
        assert list(check_store(session)) == []


@settings(max_examples=8 * MANY, deadline=timedelta(seconds=60))
@given(windows())
def test_sums_alone_say_the_same_for_windows_on_slot_edges(case: tuple[History, int, int, str]) -> None:
    history, since_ms, until_ms, tz = case
    with tempfile.TemporaryDirectory() as folder, new_store(Path(folder) / "fleet.db") as session:
        path = history.write(Path(folder) / "a.db")
        take(session, "a", path, rollups_only=True)
        asked = question(slot_floor(since_ms), slot_ceil(until_ms), history.end_ms + 100 * DAY_MS, tz)
        here, live = (figures(one) for one in (from_store(session, ["a"], asked), from_agents({"a": path}, asked)))
        # Without a single tick only the quarter-hour is known in which history begins.
        for one in (here, live):
            begins = one["window"].pop("history_begins")
            one["findings"] = [finding for finding in one["findings"] if finding[0] != "history_begins"]
            assert begins is None or begins >= to_iso(asked.since_ms - SLOT_MS)
        assert here == live


HELD = (holder("ada"),)


def week(folder: Path, name: str = "a.db", *, first_minute: int = 0, minutes: int = 120, **more: Any) -> Path:
    cards = (card("GPU-a", 50, HELD), card("GPU-b", 0, ()))
    folder.mkdir(exist_ok=True)
    return stored(folder / name, steady(minutes, *cards, start=first_minute), interval_ms=MINUTE, **more)


def test_host_that_burned_down_yesterday_still_shows_last_week(tmp_path: Path, session: Session) -> None:
    path = week(tmp_path)
    asked = question(MONDAY - DAY_MS, MONDAY + 7 * DAY_MS, MONDAY + 9 * DAY_MS)
    take(session, "a", path)
    path.unlink()
    document = from_store(session, ["a"], asked)
    assert document["card_s"] == {"active": 7_200, "idle-held": 0, "truly-idle": 7_200, "unknown": 0}
    # Its cards are expected to the end, and what nobody saw is not called idle.
    assert document["coverage"]["expected_card_s"] == 2 * 7 * 86_400
    assert document["coverage"]["unobserved_card_s"] == 2 * (7 * 86_400 - 7_200)


def test_open_hold_of_the_store_ends_where_it_was_last_seen(tmp_path: Path, session: Session) -> None:
    take(session, "a", week(tmp_path, minutes=60))
    document = from_store(session, ["a"], question(MONDAY, MONDAY + DAY_MS, MONDAY + 2 * DAY_MS))
    assert [hold["until"] for hold in document["holds"]] == ["2026-03-02T01:00:00Z"]


def test_host_installed_anew_is_one_host_with_the_same_cards(tmp_path: Path, session: Session) -> None:
    first, second = week(tmp_path, "1.db"), week(tmp_path, "2.db", first_minute=600)
    take(session, "a", first)
    take(session, "a", second, now_ms=MONDAY + DAY_MS)
    document = from_store(session, ["a"], question(MONDAY, MONDAY + 20 * HOUR, MONDAY + 2 * DAY_MS))
    assert document["cards"] == 2
    assert document["card_s"] == {"active": 14_400, "idle-held": 0, "truly-idle": 14_400, "unknown": 0}
    # Between the two nobody looked, but the cards were there.
    assert document["coverage"]["expected_card_s"] == 2 * 20 * 3_600
    assert [(user["user"], user["card_s"]) for user in document["users"]] == [("ada", 14_400)]


def test_card_that_the_host_installed_anew_does_not_know_was_taken_out(tmp_path: Path, session: Session) -> None:
    first = week(tmp_path, "1.db")
    second = stored(tmp_path / "2.db", steady(60, card("GPU-a", 50, HELD), start=600), interval_ms=MINUTE)
    take(session, "a", first)
    take(session, "a", second, now_ms=MONDAY + DAY_MS)
    document = from_store(session, ["a"], question(MONDAY, MONDAY + 20 * HOUR, MONDAY + 2 * DAY_MS))
    assert document["cards"] == 1
    assert document["coverage"]["expected_card_s"] == (20 + 10) * 3_600


def test_database_put_back_from_a_copy_counts_no_second_twice(tmp_path: Path, session: Session) -> None:
    whole = week(tmp_path, minutes=120)
    copy = tmp_path / "copy.db"
    take(session, "a", whole)
    # the copy is of the first hour, and goes on by itself two hours later
    copy = week(tmp_path / "copy", minutes=60)
    _make_same_store(whole, copy)
    take(session, "a", copy, now_ms=MONDAY + DAY_MS)
    document = from_store(session, ["a"], question(MONDAY, MONDAY + 3 * HOUR, MONDAY + 2 * DAY_MS))
    assert document["card_s"]["active"] == 7_200
    assert len(document["holds"]) == 1


def _make_same_store(whole: Path, copy: Path) -> None:
    with closing(sqlite3.connect(whole)) as one, closing(sqlite3.connect(copy)) as other:
        (store_id,) = one.execute("SELECT store_id FROM store").fetchone()
        other.execute("UPDATE store SET store_id = ?", (store_id,))
        other.commit()


@pytest.mark.parametrize("window", [(30, 45), (15, 60), (26, 44), (20, 31), (14, 52)])
@pytest.mark.parametrize("first", ["former", "later"])
def test_tick_that_reaches_over_into_another_databases_quarter_hour_counts_no_second_twice(
    tmp_path: Path, session: Session, window: tuple[int, int], first: str
) -> None:
    """A tick of ten minutes, and five minutes later the first one of the database that took its place."""
    ticks = {"former": [5, 15, 25], "later": [30, 40, 50]}
    for name in (first, *(ticks.keys() - {first})):
        made = [tick(MONDAY + m * MINUTE, card("GPU-a", 50, HELD), cover_ms=10 * MINUTE) for m in ticks[name]]
        take(session, "a", stored(tmp_path / f"{name}.db", made, interval_ms=10 * MINUTE))
    since, until = window
    here = from_store(session, ["a"], question(MONDAY + since * MINUTE, MONDAY + until * MINUTE, MONDAY + HOUR))
    seen = sum(here["card_s"].values())
    assert seen == here["users"][0]["card_s"] == (until - max(5, since)) * 60
    assert list(check_store(session)) == []


def test_host_of_which_the_store_has_nothing_is_left_out(tmp_path: Path, session: Session) -> None:
    with session.reading():
        assert stored_reports(session, ["a"], question(MONDAY, MONDAY + HOUR, MONDAY + HOUR)) == {}


def test_pulled_at_and_newest_sample_are_said(tmp_path: Path, session: Session) -> None:
    take(session, "a", week(tmp_path, minutes=60), now_ms=MONDAY + 2 * HOUR)
    document = from_store(session, ["a"], question(MONDAY, MONDAY + 5 * HOUR, MONDAY + 5 * HOUR))
    assert document["hosts"][0]["from_store"] == {
        "pulled_at": "2026-03-02T02:00:00Z",
        "newest_tick_at": "2026-03-02T00:59:00Z",
        "age_s": 3 * 3_600,
    }


def test_short_window_is_answered_from_single_ticks_on_both_databases(tmp_path: Path, session: Session) -> None:
    path = week(tmp_path)
    take(session, "a", path)
    asked = question(MONDAY + 7 * MINUTE, MONDAY + 100 * MINUTE + 500, MONDAY + DAY_MS, "Asia/Kathmandu")
    here, live = from_store(session, ["a"], asked), from_agents({"a": path}, asked)
    assert figures(here) == figures(live)
    assert here["card_s"]["active"] == 93 * 60 + 0.5
    assert holds(here, here) == holds(live, here)


def test_long_window_is_answered_from_days_on_both_databases(tmp_path: Path, session: Session) -> None:
    cards = (card("GPU-a", 50, HELD), card("GPU-b", 0, (holder("ben", 8),), index=1))
    path = stored(tmp_path / "a.db", steady(4 * 24 * 60, *cards)[::15], interval_ms=15 * MINUTE)
    take(session, "a", path)
    asked = question(MONDAY + 6 * HOUR, MONDAY + 3 * DAY_MS + 5 * HOUR, MONDAY + 5 * DAY_MS, "America/St_Johns")
    here, live = from_store(session, ["a"], asked), from_agents({"a": path}, asked)
    assert figures(here) == figures(live)
    assert len(here["hours_of_week"]) == 72  # 71 hours from 2:30 to 1:30 there


def test_clock_that_was_wrong_when_the_host_was_pulled_is_told(tmp_path: Path, session: Session) -> None:
    take(session, "a", week(tmp_path), now_ms=MONDAY + 365 * DAY_MS)
    found = from_store(session, ["a"], question(MONDAY, MONDAY + HOUR, MONDAY + 366 * DAY_MS))["findings"]
    told = [one["text"] for one in found if one["id"] == "clock_differs"]
    assert told == ["when it was pulled its clock was 365 d 0 h behind this machine's: set both by NTP"]


def test_report_of_a_pull_that_was_cut_has_the_time_of_cards_that_are_not_described_yet(
    tmp_path: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row comes with its last change: those of cards whose number changed come after the time of before."""
    monkeypatch.setattr(stream, "CHUNK_ROWS", 60)
    path = week(tmp_path, minutes=60)
    renumbered = (card("GPU-a", 50, (), index=5), card("GPU-b", 0, index=6, pci="2"))
    stored(path, steady(60, *renumbered, start=60), interval_ms=MINUTE)
    pull(session, path, "a", cut=len(export(path)) // 2)
    asked = question(MONDAY, MONDAY + HOUR, MONDAY + 3 * HOUR)
    document = from_store(session, ["a"], asked)
    assert document["cards"] == 2
    assert 0 < sum(document["card_s"].values()) <= document["coverage"]["expected_card_s"]
    assert "pull_cut" in {one["id"] for one in document["findings"]}
    pull(session, path, "a")
    assert figures(from_store(session, ["a"], asked)) == figures(from_agents({"a": path}, asked))


def test_windows_are_widened_where_nothing_but_sums_was_pulled(tmp_path: Path, session: Session) -> None:
    """Also after single ticks were: those of before still answer, to the second."""
    path = week(tmp_path, minutes=60)
    take(session, "a", path)
    stored(path, steady(60, card("GPU-a", 50, HELD), start=60), interval_ms=MINUTE)
    take(session, "a", path, rollups_only=True)
    for since, until, widened in ((7, 52, (7, 52)), (67, 112, (60, 120)), (7, 112, (7, 120)), (106, 107, (105, 120))):
        asked = question(MONDAY + since * MINUTE, MONDAY + until * MINUTE, MONDAY + 3 * HOUR)
        there = question(*(MONDAY + edge * MINUTE for edge in widened), MONDAY + 3 * HOUR)
        here = from_store(session, ["a"], asked)
        assert figures(here)["card_s"] == figures(from_agents({"a": path}, there))["card_s"]
        assert here["window"]["until"] == from_agents({"a": path}, there)["window"]["until"]


def test_quarter_hour_that_is_not_over_is_whole_without_single_ticks(tmp_path: Path, session: Session) -> None:
    path = week(tmp_path, minutes=52)
    take(session, "a", path, rollups_only=True)
    now_ms = MONDAY + 52 * MINUTE
    document = from_store(session, ["a"], question(MONDAY + 7 * MINUTE, now_ms, now_ms))
    assert document["coverage"]["unobserved_card_s"] == 0
    assert document["window"]["until"] == "2026-03-02T00:52:00Z"
    assert document["card_s"]["active"] == 52 * 60


def test_database_that_comes_back_is_the_one_that_the_host_goes_on_with(tmp_path: Path, session: Session) -> None:
    one = week(tmp_path, "1.db", minutes=60)
    take(session, "a", one, now_ms=MONDAY + HOUR)
    two = stored(tmp_path / "2.db", steady(60, card("GPU-a", 50, HELD), start=60), interval_ms=MINUTE)
    take(session, "a", two, now_ms=MONDAY + 2 * HOUR)
    week(tmp_path, "1.db", minutes=60, first_minute=120)
    take(session, "a", one, now_ms=MONDAY + 3 * HOUR)
    document = from_store(session, ["a"], question(MONDAY, MONDAY + 3 * HOUR, MONDAY + 4 * HOUR))
    assert document["hosts"][0]["from_store"]["pulled_at"] == "2026-03-02T03:00:00Z"
    assert (document["cards"], document["coverage"]["expected_card_s"]) == (2, 2 * 3 * 3_600)
    assert document["coverage"]["unobserved_card_s"] == 3_600


def test_card_that_only_the_lost_state_of_a_database_knew_is_expected_while_it_was_there(
    tmp_path: Path, session: Session
) -> None:
    path = stored(tmp_path / "1.db", steady(60, card("GPU-a", 50, HELD)), interval_ms=MINUTE)
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    week(tmp_path, "1.db", minutes=30, first_minute=60)
    stored(path, steady(30, card("GPU-a", 50, HELD), start=90), interval_ms=MINUTE)
    take(session, "a", path)
    stored(copy, steady(60, card("GPU-a", 50, HELD), start=180), interval_ms=MINUTE)
    take(session, "a", copy)
    document = from_store(session, ["a"], question(MONDAY, MONDAY + 2 * HOUR, MONDAY + 5 * HOUR))
    assert document["card_s"] == {"active": 7_200, "idle-held": 0, "truly-idle": 1_800, "unknown": 0}
    assert document["coverage"]["expected_card_s"] == 7_200 + 3_600
    assert document["coverage"]["unobserved_card_s"] == 1_800
