"""What can go wrong around the file: killed writers, a full disk, clocks, a reader that stays, damage."""

from __future__ import annotations

import logging
import random
import sqlite3
from pathlib import Path

import pytest

from gua.errors import DatabaseUnusable
from gua.store import wal
from gua.store.database import open_reader
from gua.store.files import move_aside
from tests.agent.store.opened import report, stored, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder, tick
from tests.bench.kill import kill_often

DAY = 24 * HOUR


@pytest.mark.processes
def test_a_writer_killed_in_mid_write_loses_the_running_tick_at_most(tmp_path: Path) -> None:
    assert [one for one in kill_often(tmp_path / "gua.db", 5, random.Random(1)) if not one.right] == []


def test_a_full_disk_loses_ticks_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    with writing(path) as writer:
        writer.write_tick(tick(MONDAY, card()))
        connection = writer._session.connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        crowd = tuple(holder(f"user-{pid}", pid) for pid in range(200))
        with pytest.raises(DatabaseUnusable, match="full"):
            writer.write_tick(tick(MONDAY + MINUTE, *(card(f"GPU-{n}", holders=crowd) for n in range(40))))
        connection.execute("PRAGMA max_page_count = 100000")
        writer.write_tick(tick(MONDAY + 2 * MINUTE, card()))
    found = report(path, MONDAY, MONDAY + HOUR)
    assert found["samples"] == 2
    assert [one["uuid"] for one in found["cards"]] == ["GPU-a"]


@pytest.mark.parametrize("jump", [-HOUR, 30 * DAY, -MONDAY])
def test_a_clock_that_jumps_and_comes_back_counts_each_second_once(tmp_path: Path, jump: int) -> None:
    before = [tick(MONDAY + n * MINUTE, card(), cover_ms=MINUTE) for n in range(30)]
    away = [tick(MONDAY + jump + n * MINUTE, card(), cover_ms=MINUTE) for n in range(30, 40)]
    after = [tick(MONDAY + n * MINUTE, card(), cover_ms=MINUTE) for n in range(40, 60)]
    path = stored(tmp_path / "gua.db", [*before, *away, *after])
    found = report(path, MONDAY, MONDAY + HOUR)
    assert found["card_s"]["truly-idle"] == 50 * 60
    assert found["coverage"]["unobserved_card_s"] == 10 * 60
    everything = report(path, 0, MONDAY + 60 * DAY)
    assert everything["card_s"]["truly-idle"] == 60 * 60


def test_a_reader_that_stays_for_hours_costs_no_tick_and_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal, "SAY_FROM_BYTES", 5 << 20)
    monkeypatch.setattr(wal, "LIMIT_BYTES", 1 << 20)
    path = stored(tmp_path / "gua.db", [tick(MONDAY, card())])
    foreign = sqlite3.connect(path, isolation_level=None)
    foreign.execute("BEGIN")
    assert foreign.execute("SELECT count(*) FROM tick").fetchone() == (1,)
    with caplog.at_level(logging.INFO), writing(path) as writer:
        monkeypatch.setattr("gua.store.writable.LIMIT_BYTES", 1 << 20)
        writer._session.connection.execute("PRAGMA journal_size_limit = 1000000")
        count = 1
        while not caplog.messages and count < 3_000:
            writer.write_tick(tick(MONDAY + count * MINUTE, *(card(f"GPU-{n}") for n in range(40))))
            count += 1
        assert "has grown to" in caplog.text
        foreign.execute("COMMIT")
        foreign.close()
        end = count + 3_000
        while "short again" not in caplog.text and count < end:
            writer.write_tick(tick(MONDAY + count * MINUTE, card()))
            count += 1
        assert "short again" in caplog.text
        assert (tmp_path / "gua.db-wal").stat().st_size <= 1 << 20
        with open_reader(path) as reader:
            assert reader.newest_tick_ms() == MONDAY + (count - 1) * MINUTE


def test_what_lay_beside_a_damaged_file_goes_with_it(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    path.write_bytes(b"precious text")
    for name in ("gua.db-wal", "gua.db-journal"):
        (tmp_path / name).write_bytes(b"more")
    aside = move_aside(path, MONDAY)
    assert aside.name == "gua.db.damaged-20260302T000000Z"
    assert sorted(one.name for one in tmp_path.iterdir()) == [aside.name, f"{aside.name}-journal", f"{aside.name}-wal"]


@pytest.mark.parametrize("size", [0, 700, 20_000])
def test_a_truncated_database_is_moved_aside_unless_it_is_empty(tmp_path: Path, size: int) -> None:
    path = stored(tmp_path / "gua.db", [tick(MONDAY + n * MINUTE, card(), cover_ms=MINUTE) for n in range(30)])
    with path.open("r+b") as file:
        file.truncate(size)
    with writing(path) as writer:
        assert (writer.moved_aside is None) is (size == 0)
        writer.write_tick(tick(MONDAY, card()))
    assert report(path, MONDAY, MONDAY + HOUR)["samples"] == 1


def test_a_network_file_system_gets_no_write_ahead_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gua.store.writable.is_network_path", lambda path: True)
    path = tmp_path / "gua.db"
    with writing(path) as writer:
        writer.write_tick(tick(MONDAY, card()))
        assert not (tmp_path / "gua.db-wal").exists()
        assert report(path, MONDAY, MONDAY + HOUR)["samples"] == 1


def test_a_read_only_database_is_one_clear_line(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [tick(MONDAY, card())])
    with writing(path) as writer:
        writer._session.connection.execute("PRAGMA query_only = 1")
        with pytest.raises(DatabaseUnusable, match=r"^cannot write .*gua\.db: [^\n]*readonly[^\n]*$"):
            writer.write_tick(tick(MONDAY + MINUTE, card()))
        writer._session.connection.execute("PRAGMA query_only = 0")
        writer.write_tick(tick(MONDAY + 2 * MINUTE, card()))
    assert report(path, MONDAY, MONDAY + HOUR)["samples"] == 2
