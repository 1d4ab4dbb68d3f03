"""Databases that are replaced, put back, cloned or pruned on a host: told, and no second counted twice."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from gua.report.window import exact_window
from gua.store.retention import Retention
from gua_fleet.pull_notes import notes_of
from gua_fleet.store.histories import histories
from gua_fleet.store.intake import RESTORED, Intake
from gua_fleet.store.reading import raw_window, window_sums
from gua_fleet.store.session import Session
from tests.agent.export.test_stream import history
from tests.agent.store.opened import SetClock, steady, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card
from tests.fleet.store.pulling import NOW_MS, kept_rows, present, pull

SLOT = 900_000


def notes(session: Session, intake: Intake) -> str:
    return "; ".join(notes_of(session, intake))


def ticks_counted(session: Session) -> int:
    """Ticks of all histories of all hosts, as a report of a long time counts them."""
    window = exact_window(MONDAY - 20 * HOUR, MONDAY + 40 * HOUR)
    found = window_sums(session, [one.id for one in histories(session)], window)
    return sum(sum(sums.ticks.values()) for sums in found.values())


def recorded(path: Path, first: int, end: int, **more: str) -> Path:
    with writing(path, interval_ms=MINUTE, **more) as writer:
        for one in steady(end - first, card("GPU-a", 50), start=first):
            writer.write_tick(one)
    return path


def test_a_replaced_database_starts_afresh_and_the_old_history_stays(session: Session, tmp_path: Path) -> None:
    pull(session, recorded(tmp_path / "one.db", 0, 60))
    intake = pull(session, recorded(tmp_path / "two.db", 90, 120))
    old, new = histories(session)
    assert (old.ended_ms, old.ended_why) == (NOW_MS, "another database took its place")
    assert (new.ended_ms, new.branch, new.rev > 0) == (None, 0, True)
    assert ticks_counted(session) == 90
    assert notes(session, intake) == "its database was replaced, the same cards: what was here before is kept"
    assert notes(session, pull(session, tmp_path / "two.db")) == ""


def test_a_reimaged_host_with_the_same_cards_is_recognised(session: Session, tmp_path: Path) -> None:
    pull(session, recorded(tmp_path / "one.db", 0, 60))
    intake = pull(session, recorded(tmp_path / "two.db", 90, 120, machine_id="m2"))
    assert notes(session, intake) == "re-imaged, the same cards: what was here before is kept"


def test_a_former_database_that_comes_back_goes_on(session: Session, tmp_path: Path) -> None:
    one, two = recorded(tmp_path / "one.db", 0, 60), recorded(tmp_path / "two.db", 60, 90)
    for path in (one, two):
        pull(session, path)
    recorded(one, 90, 120)
    pull(session, one)
    assert [found.ended_ms is None for found in histories(session)] == [True, False]
    assert ticks_counted(session) == 120


def test_a_database_put_back_begins_a_branch_and_time_counts_once(session: Session, tmp_path: Path) -> None:
    """An hour is pulled, the host goes back to what it was after half an hour, and records on after the hour."""
    path = recorded(tmp_path / "gua.db", 0, 30)
    shutil.copy(path, tmp_path / "copy.db")
    recorded(path, 30, 60)
    pull(session, path)
    shutil.copy(tmp_path / "copy.db", path)
    intake = pull(session, path)
    old, new = histories(session)
    assert (old.ended_why, new.branch, new.store_id) == (RESTORED, 1, old.store_id)
    assert notes(session, intake).startswith("its database was restored from an older copy")
    assert ticks_counted(session) == 60  # the second half-hour was seen, though the host has forgotten it
    assert {row[0] for row in session.rows("SELECT slot FROM superseded WHERE history = ?", (old.id,))} == {
        MONDAY // SLOT,
        MONDAY // SLOT + 1,
    }
    recorded(path, 90, 120)
    pull(session, path)
    assert ticks_counted(session) == 90


def test_a_database_put_back_is_told_though_it_has_recorded_beyond_by_now(session: Session, tmp_path: Path) -> None:
    path = recorded(tmp_path / "gua.db", 0, 10)
    shutil.copy(path, tmp_path / "copy.db")
    recorded(path, 10, 40)
    pull(session, path)
    before = kept_rows(session, present(session).id)
    shutil.copy(tmp_path / "copy.db", path)
    recorded(path, 120, 180)  # more revisions than were pulled, other ticks in them
    intake = pull(session, path)
    old, new = histories(session)
    assert (intake.taken.restored, new.branch) == (True, 1)
    assert kept_rows(session, old.id) == before
    # the later one counts in the first quarter-hour, where it has ten ticks; nobody else saw what came after that
    assert ticks_counted(session) == 10 + 25 + 60
    assert len(kept_rows(session, new.id)["tick"]) == 70


@pytest.mark.parametrize("later_rollups_only", [True, False])
def test_a_database_put_back_is_told_by_sums_alone_too(
    session: Session, tmp_path: Path, later_rollups_only: bool
) -> None:
    """A pull of sums, then the same with another past beyond the cursor: what is pulled next does not matter."""
    path = recorded(tmp_path / "gua.db", 0, 10)
    shutil.copy(path, tmp_path / "copy.db")
    recorded(path, 10, 40)
    pull(session, path, rollups_only=True)
    before = kept_rows(session, present(session).id)
    shutil.copy(tmp_path / "copy.db", path)
    recorded(path, 120, 180)
    intake = pull(session, path, rollups_only=later_rollups_only)
    old, new = histories(session)
    assert (intake.taken.restored, old.ended_why, new.branch) == (True, RESTORED, 1)
    assert kept_rows(session, old.id) == before
    assert ticks_counted(session) == 10 + 25 + 60
    assert notes(session, intake).startswith("its database was restored from an older copy")
    assert not pull(session, path, rollups_only=later_rollups_only).taken.new


def test_what_no_copy_is_is_not_taken_for_one_by_its_sums(session: Session, tmp_path: Path) -> None:
    """Pulls in the midst of a quarter-hour, of nothing new, after a clock that was set back and after days."""
    path = tmp_path / "gua.db"
    for first, end in ((0, 7), (7, 9), (9, 9), (300, 310), (20, 30), (30, 40), (2_000, 2_001)):
        recorded(path, first, end)
        assert not pull(session, path, rollups_only=True).taken.restored
    wanted = sum(row[0] for row in session.rows("SELECT ticks FROM tick_slot"))
    assert wanted == ticks_counted(session) == 40
    assert len(histories(session)) == 1


def test_two_hosts_with_one_database_are_kept_apart_and_told(session: Session, tmp_path: Path) -> None:
    path = recorded(tmp_path / "gua.db", 0, 30)
    clone = shutil.copy(path, tmp_path / "clone.db")
    pull(session, path, "gpu01")
    assert notes(session, pull(session, path, "again")) == "the same machine as gpu01: its time is here twice"
    with writing(Path(clone), interval_ms=MINUTE, boot_id="another boot") as writer:
        writer.write_tick(steady(1, card("GPU-b", 0), start=60)[0])
    intake = pull(session, Path(clone), "gpu02")
    assert "has the database of again, gpu01, too: renamed, or a cloned image; kept apart by host" in notes(
        session, intake
    )
    assert len(kept_rows(session, present(session, "gpu01").id)["tick"]) == 30
    assert len(kept_rows(session, present(session, "gpu02").id)["tick"]) == 31


def test_raw_ticks_that_went_before_they_were_pulled_are_told_and_sums_are_whole(
    session: Session, tmp_path: Path
) -> None:
    path = recorded(tmp_path / "gua.db", 0, 30)
    pull(session, path)
    clock = SetClock(MONDAY + 400 * HOUR)
    with writing(path, interval_ms=MINUTE, clock=clock, retention=Retention(HOUR, 9_000 * HOUR)) as writer:
        for one in steady(1_600, card("GPU-a", 50), start=30):
            clock.ms = one.ts_ms
            writer.write_tick(one)
    intake = pull(session, path)
    assert "were removed there before they were pulled: sums are whole" in notes(session, intake)
    found = present(session)
    assert found.raw_since_ms is not None
    assert (raw_window(session, found) or (0,))[0] == found.raw_since_ms > MONDAY + 30 * MINUTE
    assert ticks_counted(session) == 1_630


@pytest.mark.parametrize(("ahead_ms", "said"), [(365 * 24 * HOUR, "365 days behind"), (-24 * HOUR, "24 h ahead of")])
def test_a_clock_that_is_wrong_is_told(session: Session, tmp_path: Path, ahead_ms: int, said: str) -> None:
    """The exports of the tests say that they are of Monday."""
    intake = pull(session, recorded(tmp_path / "gua.db", 0, 5), now_ms=MONDAY + ahead_ms)
    assert notes(session, intake) == f"its clock is {said} this machine's"
    assert len(kept_rows(session, present(session).id)["tick"]) == 5


def test_a_host_that_drops_names_has_them_dropped_here(session: Session, tmp_path: Path) -> None:
    path = history(tmp_path / "gua.db", 0, 120)
    pull(session, path)
    before = present(session)
    total = session.value("SELECT sum(card_ms) FROM user_day WHERE history = ?", (before.id,))
    clock = SetClock(MONDAY)
    with writing(path, interval_ms=MINUTE, clock=clock, retention=Retention(9_000 * HOUR, HOUR)) as writer:
        for one in steady(1_600, card("GPU-b", 0, index=1, pci="2"), start=120):
            clock.ms = one.ts_ms
            writer.write_tick(one)
    connection = sqlite3.connect(path)
    there = {row[0] for row in connection.execute("SELECT name FROM user")}
    connection.close()
    assert there < {"ada", "ben", "chi", "(expired)"}, "the host has dropped somebody"
    pull(session, path)
    assert {row[0] for row in session.rows("SELECT name FROM person WHERE history = ?", (before.id,))} == there
    assert session.value("SELECT sum(card_ms) FROM user_day WHERE history = ?", (before.id,)) == total
    assert replace(present(session), rev=0).store_id == before.store_id
