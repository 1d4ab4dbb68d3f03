from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gua.errors import DatabaseUnusable
from gua.model import DEFAULT_RULE
from gua.store import ticks as ticks_module
from gua.store.database import open_reader
from tests.agent.store.opened import hour, steady, write, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, SECOND, card, holder, tick

DAY = 24 * HOUR


def test_a_tick_before_any_run_is_refused(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db") as writer:
        writer.end_run()
        with pytest.raises(RuntimeError, match="begin_run"):
            writer.write_tick(tick(MONDAY, card()))


def test_overlapping_ticks_cover_each_second_once(tmp_path: Path) -> None:
    ticks = [tick(MONDAY + n * 10 * SECOND, card(), cover_ms=30 * SECOND) for n in range(6)]
    assert hour(write(tmp_path, ticks))["card_s"]["truly-idle"] == 50 + 30


def test_missed_ticks_stay_unobserved(tmp_path: Path) -> None:
    found = hour(write(tmp_path, [*steady(10, card()), *steady(10, card(), start=50)]))
    assert found["card_s"]["truly-idle"] == 20 * 60
    assert found["coverage"]["unobserved_card_s"] == 40 * 60


def test_one_tick_stamped_a_month_ahead_swallows_nothing(tmp_path: Path) -> None:
    first, *rest = steady(60, card())
    path = write(tmp_path, [first, tick(MONDAY + 30 * DAY, card()), *rest])
    assert hour(path)["card_s"]["truly-idle"] == 3_600


def test_a_tick_that_fills_the_gap_between_two_covers_both_its_sides(tmp_path: Path) -> None:
    ticks = [
        tick(MONDAY + 20 * SECOND, card(), cover_ms=10 * SECOND),
        tick(MONDAY + 40 * SECOND, card(), cover_ms=10 * SECOND),
        tick(MONDAY + 10 * SECOND, card(util_pct=50), cover_ms=60 * SECOND),
    ]
    found = hour(write(tmp_path, ticks))
    assert found["card_s"] == {"active": 10 + 10 + 20, "idle-held": 0, "truly-idle": 20, "unknown": 0}


def test_a_sync_once_covers_nothing_and_is_the_newest_state(tmp_path: Path) -> None:
    path = write(tmp_path, [*steady(2, card()), tick(MONDAY + 90 * SECOND, card(util_pct=70), cover_ms=0)])
    found = hour(path)
    assert found["card_s"] == {"active": 0, "idle-held": 0, "truly-idle": 120, "unknown": 0}
    assert found["samples"] == 3
    now = found["cards"][0]["now"]
    assert (now["state"], now["at"], now["since"]) == ("active", "2026-03-02T00:01:30Z", "2026-03-02T00:01:30Z")


def test_every_rule_in_force_is_told(tmp_path: Path) -> None:
    strict = replace(DEFAULT_RULE, active_util_pct=50)
    write(tmp_path, steady(10, card(util_pct=20)))
    path = write(tmp_path, steady(10, card(util_pct=20, rule=strict), start=10), rule=strict)
    found = hour(path)
    assert [rule["active_util_pct"] for rule in found["rules"]] == [10, 50]
    assert (found["card_s"]["active"], found["card_s"]["truly-idle"]) == (600, 600)


def test_every_interval_in_the_window_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, [*steady(5, card()), tick(MONDAY + 10 * MINUTE, card(), cover_ms=30 * SECOND)])
    assert hour(path)["intervals_s"] == [30, 60]


def test_each_row_carries_the_number_of_the_transaction_that_last_wrote_it(tmp_path: Path) -> None:
    path = write(tmp_path, steady(3, card(holders=(holder(),))))
    with sqlite3.connect(path) as connection:
        ticks = [row[0] for row in connection.execute("SELECT rev FROM tick ORDER BY id")]
        tables = ("hold", "card_slot", "user_slot", "tick_slot")
        newest = [connection.execute(f"SELECT max(rev) FROM {table}").fetchone()[0] for table in tables]
        (device,) = connection.execute("SELECT rev FROM device").fetchone()
    connection.close()
    assert ticks == sorted(set(ticks))
    assert newest == [ticks[-1]] * 4
    assert device == ticks[0]


def test_many_ticks_in_one_transaction_have_one_revision(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db") as writer:
        with open_reader(tmp_path / "gua.db") as reader:
            before = reader.rev()
        writer.write_ticks(steady(500, card()))
        with open_reader(tmp_path / "gua.db") as reader:
            assert reader.rev() == before + 1


def test_the_counter_of_a_card_is_kept_as_its_movement(tmp_path: Path) -> None:
    def metered(energy_mj: int | None) -> Any:
        plain = card()
        return replace(plain, reading=replace(plain.reading, energy_mj=energy_mj))

    counters = [5_000_000, 8_000_500, 8_000_999, 1_000_000, None, 2_000_000, 3_000_000]
    path = write(tmp_path, [steady(1, metered(value), start=n)[0] for n, value in enumerate(counters)])
    with sqlite3.connect(path) as connection:
        rows = [row[0] for row in connection.execute("SELECT energy_j FROM gpu_sample ORDER BY id")]
    connection.close()
    assert rows == [None, 3_000, 0, None, None, None, 1_000]


def test_a_database_removed_under_the_writer_is_an_error_and_no_silent_loss(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db") as writer:
        for name in tmp_path.iterdir():
            name.unlink()
        with pytest.raises(DatabaseUnusable, match="removed or replaced"):
            writer.write_tick(tick(MONDAY, card()))


def test_a_locked_database_is_one_clear_line_and_works_again_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gua.store.database.BUSY_TIMEOUT_MS", 20)
    with writing(tmp_path / "gua.db") as writer:
        other = sqlite3.connect(tmp_path / "gua.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnusable, match="locked"):
            writer.write_tick(tick(MONDAY, card()))
        other.close()
        writer.write_tick(tick(MONDAY, card()))
    assert hour(tmp_path / "gua.db")["samples"] == 1


def test_the_newest_tick_of_a_daemon_is_not_hidden_by_a_sync_once(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db") as writer:
        writer.write_tick(tick(MONDAY, card()))
        writer.begin_run("sync-once", 0, DEFAULT_RULE, "0.1.0")
        writer.write_tick(tick(MONDAY + HOUR, card(), cover_ms=0))
    with open_reader(tmp_path / "gua.db") as reader:
        newest = reader.newest_daemon_tick()
    assert newest is not None
    assert (newest.at_ms, newest.interval_ms) == (MONDAY, 30_000)


def test_a_full_disk_is_named_and_the_next_tick_may_be_stored(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    with writing(path) as writer:
        writer.write_tick(tick(MONDAY, card()))
        connection = writer._session.connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        many = [tick(MONDAY + n * MINUTE, card(), cover_ms=MINUTE) for n in range(1, 2_000)]
        with pytest.raises(DatabaseUnusable, match="disk is full"):
            writer.write_ticks(many)
        connection.execute("PRAGMA max_page_count = 1000000")
        writer.write_tick(many[0])
    assert hour(path)["samples"] == 2


def test_every_upsert_names_its_key_as_old_sqlite_demands() -> None:
    # Debian 11 and Rocky 9 have SQLite 3.34, which takes "ON CONFLICT DO UPDATE" for a syntax error
    upserts = [sql for sql in vars(ticks_module).values() if isinstance(sql, str) and "DO UPDATE" in sql]
    assert len(upserts) == 3
    assert all(re.search(r"ON CONFLICT\([a-z_, ]+\) DO UPDATE", sql) for sql in upserts)
