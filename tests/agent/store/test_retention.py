from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

import pytest

from gua.coverage import SLOT_MS
from gua.model import DEFAULT_RULE, Tick
from gua.store.database import open_reader
from gua.store.retention import SLICE_TICKS, Retention
from tests.agent.store.opened import SetClock, report, writing
from tests.agent.store.ticks import BOOT, HOUR, MINUTE, MONDAY, card, holder, tick

DAY = 24 * HOUR
STEP = 10 * MINUTE
TICKS_A_DAY = DAY // STEP
# What nobody removes: the last day, by which the clock is believed, and what is not worth a slice yet.
SPARED = TICKS_A_DAY + SLICE_TICKS
SHORT = Retention(raw_ms=2 * DAY, user_ms=400 * DAY)


def run(path: Path, ticks: Iterable[Tick], retention: Optional[Retention] = SHORT, **more: Any) -> None:
    """Write the ticks one by one, each at its own time."""
    clock = SetClock()
    with writing(path, interval_ms=STEP, clock=clock, retention=retention, **more) as writer:
        for one in ticks:
            clock.ms = one.ts_ms
            writer.write_tick(one)


def steps(first: int, end: int, *users: str) -> list[Tick]:
    """Ticks of one card every ten minutes, by number since Monday; each user holds another 4 GB of it."""
    held = tuple(holder(user, pid) for pid, user in enumerate(users, start=1))
    return [tick(MONDAY + n * STEP, card(holders=held), cover_ms=STEP) for n in range(first, end)]


def one(path: Path, query: str) -> Any:
    connection = sqlite3.connect(path)
    row = connection.execute(query).fetchone()
    connection.close()
    return row[0] if len(row) == 1 else row


def test_old_raw_ticks_go_and_every_figure_stays(tmp_path: Path) -> None:
    history = steps(0, 8 * TICKS_A_DAY, "ada", "ben")
    run(tmp_path / "all.db", history, None)
    run(tmp_path / "gua.db", history)
    raw, kept = (report(tmp_path / name, MONDAY, MONDAY + 8 * DAY) for name in ("all.db", "gua.db"))
    assert one(tmp_path / "gua.db", "SELECT count(*) FROM tick") <= 2 * TICKS_A_DAY + SPARED
    for name in ("card_s", "coverage", "users", "hours_of_week", "samples", "holds", "rules", "intervals_s"):
        assert kept[name] == raw[name]  # type: ignore[literal-required]
    assert [{**row, "now": None} for row in kept["cards"]] == [{**row, "now": None} for row in raw["cards"]]


def test_samples_and_memory_go_with_their_ticks(tmp_path: Path) -> None:
    ticks = [
        tick(MONDAY + n * STEP, card(holders=(holder("ada", memory_mb=1_000 + n),)), cover_ms=STEP)
        for n in range(6 * TICKS_A_DAY)
    ]
    run(tmp_path / "gua.db", ticks)
    left = one(tmp_path / "gua.db", "SELECT count(*) FROM tick")
    assert one(tmp_path / "gua.db", "SELECT count(*) FROM sample") == left
    assert left <= one(tmp_path / "gua.db", "SELECT count(*) FROM hold_memory") <= left + 1
    # an occupancy is kept for as long as it could have been in use
    assert one(tmp_path / "gua.db", "SELECT count(*) FROM occupancy WHERE id NOT IN (SELECT occupancy FROM sample)") > 0
    with open_reader(tmp_path / "gua.db") as reader:
        rows = list(reader.card_ticks(1, (MONDAY, MONDAY + 6 * DAY)))
    assert [row.holds[0].memory_mb for row in rows] == [row.memory_used_mb for row in rows]


def test_memory_held_is_still_told_by_the_last_reading_when_all_others_are_gone(tmp_path: Path) -> None:
    gone = [tick(MONDAY + n * STEP, card(), cover_ms=STEP) for n in range(6, 6 * TICKS_A_DAY)]
    run(tmp_path / "gua.db", [*steps(0, 6, "ada"), *gone])
    assert one(tmp_path / "gua.db", "SELECT count(*) FROM hold_memory") == 0
    (user,) = report(tmp_path / "gua.db", MONDAY, MONDAY + 6 * DAY)["users"]
    assert (user["user"], user["held_mb"]) == ("ada", 4_000)


def test_what_raw_ticks_are_left_is_told(tmp_path: Path) -> None:
    run(tmp_path / "gua.db", steps(0, 6 * TICKS_A_DAY))
    with open_reader(tmp_path / "gua.db") as reader:
        since_ms = reader.raw_since_ms()
        assert since_ms == one(tmp_path / "gua.db", "SELECT min(ts_ms) FROM tick")
        assert reader.history_begins_ms() == MONDAY
        assert since_ms is not None
        ends = report(tmp_path / "gua.db", since_ms + SLOT_MS + 7, since_ms + 3 * SLOT_MS + 7)
    assert ends["card_s"]["truly-idle"] == 2 * SLOT_MS / 1000


def test_nothing_is_removed_before_its_time(tmp_path: Path) -> None:
    run(tmp_path / "gua.db", steps(0, 2 * TICKS_A_DAY + SLICE_TICKS))
    assert one(tmp_path / "gua.db", "SELECT count(*) FROM tick") == 2 * TICKS_A_DAY + SLICE_TICKS
    assert one(tmp_path / "gua.db", "SELECT raw_since_ms FROM store") is None


def test_the_file_stops_growing(tmp_path: Path) -> None:
    path, history = tmp_path / "gua.db", steps(0, 12 * TICKS_A_DAY)
    run(path, history[: 6 * TICKS_A_DAY])
    early = {name: one(path, f"PRAGMA {name}") for name in ("page_count", "freelist_count")}
    sums = "SELECT (SELECT count(*) FROM card_slot) + (SELECT count(*) FROM tick_slot)"
    before = one(path, sums)
    run(path, history[6 * TICKS_A_DAY :])
    # sums are kept for ever, at 50 bytes a row or less
    grown_pages = one(path, "PRAGMA page_count") - early["page_count"]
    assert grown_pages <= (one(path, sums) - before) * 50 / 4096 + 4
    assert one(path, "PRAGMA freelist_count") <= early["freelist_count"] + 4


@pytest.mark.parametrize("ahead", [40 * DAY, 4_000 * DAY])
def test_a_clock_set_ahead_for_hours_removes_nothing(tmp_path: Path, ahead: int) -> None:
    right = steps(0, 2 * TICKS_A_DAY)
    wrong = [tick(MONDAY + 2 * DAY + ahead + n * STEP, card(), cover_ms=STEP) for n in range(TICKS_A_DAY // 2)]
    again = steps(2 * TICKS_A_DAY + len(wrong), 2 * TICKS_A_DAY + len(wrong) + 10)
    run(tmp_path / "gua.db", [*right, *wrong, *again])
    assert one(tmp_path / "gua.db", "SELECT count(*) FROM tick") == len(right) + len(wrong) + 10


def test_a_clock_in_1970_removes_nothing_and_its_own_ticks_go_first(tmp_path: Path) -> None:
    dead = [tick(n * STEP, card(), cover_ms=STEP) for n in range(SLICE_TICKS)]
    run(tmp_path / "gua.db", [*dead, *steps(0, 10)])
    assert one(tmp_path / "gua.db", "SELECT count(*) FROM tick") == SLICE_TICKS + 10
    run(tmp_path / "gua.db", steps(10, TICKS_A_DAY + 10))
    assert one(tmp_path / "gua.db", "SELECT min(ts_ms) FROM tick") == MONDAY
    assert one(tmp_path / "gua.db", "SELECT count(*) FROM tick") == TICKS_A_DAY + 10


def test_a_stretch_that_may_yet_turn_long_keeps_its_ticks(tmp_path: Path) -> None:
    patient = replace(DEFAULT_RULE, long_idle_s=5 * DAY // 1000)
    run(tmp_path / "gua.db", steps(0, 6 * TICKS_A_DAY, "ada"), rule=patient)
    found = report(tmp_path / "gua.db", MONDAY, MONDAY + 6 * DAY)
    assert found["users"][0]["idle_held_long_card_s"] == found["users"][0]["card_s"] == 6 * DAY / 1000
    assert found["holds"][0]["idle_held_long_card_s"] == 6 * DAY / 1000


def test_the_newest_tick_of_a_card_in_service_stays(tmp_path: Path) -> None:
    both = tick(MONDAY, card(), card("GPU-b"), cover_ms=STEP)
    run(tmp_path / "gua.db", [both, *steps(1, 6 * TICKS_A_DAY)])
    with open_reader(tmp_path / "gua.db") as reader:
        assert sorted(reader.now()) == [1, 2]


def names(path: Path) -> set[str]:
    """Every text in the database that could name somebody."""
    connection = sqlite3.connect(path)
    found = {
        value
        for query in (
            "SELECT name FROM user",
            "SELECT name FROM process",
            "SELECT container_id FROM process",
            "SELECT slurm_job FROM process",
            "SELECT mount_hint FROM process",
        )
        for (value,) in connection.execute(query)
        if value is not None
    }
    connection.close()
    return found


def test_users_are_forgotten_and_their_sums_are_not(tmp_path: Path) -> None:
    forgetful = Retention(raw_ms=DAY, user_ms=3 * DAY)
    gone, stays = steps(0, TICKS_A_DAY, "ada", "ben"), steps(TICKS_A_DAY, 8 * TICKS_A_DAY, "ben")
    run(tmp_path / "all.db", [*gone, *stays], None)
    run(tmp_path / "gua.db", [*gone, *stays], forgetful)
    assert "ada" in names(tmp_path / "all.db")
    assert "ada" not in names(tmp_path / "gua.db")
    before, after = (report(tmp_path / name, MONDAY, MONDAY + 8 * DAY) for name in ("all.db", "gua.db"))
    assert {user["user"] for user in after["users"]} == {"(expired)", "ben"}
    for name in ("card_s", "share_s", "shared_card_s", "idle_held_long_card_s", "energy_j", "samples"):
        assert sum(user[name] for user in after["users"]) == sum(  # type: ignore[literal-required]
            user[name]
            for user in before["users"]  # type: ignore[literal-required]
        )
    recent = (MONDAY + 6 * DAY, MONDAY + 8 * DAY)
    assert report(tmp_path / "gua.db", *recent)["users"] == report(tmp_path / "all.db", *recent)["users"]
    assert {hold["user"] for hold in after["holds"]} == {"(expired)", "ben"}


def test_a_user_who_comes_back_has_a_name_again(tmp_path: Path) -> None:
    forgetful = Retention(raw_ms=DAY, user_ms=2 * DAY)
    away = [tick(MONDAY + n * STEP, card(), cover_ms=STEP) for n in range(6, 5 * TICKS_A_DAY)]
    run(
        tmp_path / "gua.db",
        [*steps(0, 6, "ada"), *away, *steps(5 * TICKS_A_DAY, 5 * TICKS_A_DAY + 6, "ada")],
        forgetful,
    )
    found = report(tmp_path / "gua.db", MONDAY, MONDAY + 5 * DAY + HOUR)
    assert {user["user"]: user["card_s"] for user in found["users"]} == {"(expired)": 3_600, "ada": 3_600}


def test_who_is_unattributed_needs_not_be_forgotten(tmp_path: Path) -> None:
    ticks = [tick(MONDAY + n * STEP, card(used_mb=9_000), cover_ms=STEP) for n in range(6 * TICKS_A_DAY)]
    run(tmp_path / "gua.db", ticks, Retention(raw_ms=DAY, user_ms=DAY))
    found = report(tmp_path / "gua.db", MONDAY, MONDAY + 6 * DAY)
    assert [user["user"] for user in found["users"]] == ["unattributed"]


@pytest.mark.parametrize("boot", [BOOT, "another"])
def test_a_process_that_held_for_years_is_named_until_it_ends(tmp_path: Path, boot: str) -> None:
    forgetful = Retention(raw_ms=DAY, user_ms=2 * DAY)
    run(tmp_path / "gua.db", steps(0, 5 * TICKS_A_DAY, "ada"), forgetful, boot_id=boot)
    (hold,) = report(tmp_path / "gua.db", MONDAY, MONDAY + 5 * DAY)["holds"]
    assert (hold["user"], hold["until"]) == ("ada", None)
