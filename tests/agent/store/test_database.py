from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from gua.errors import DatabaseDamaged, DatabaseMissing, DatabaseUnusable
from gua.store.database import open_reader
from gua.store.version import SCHEMA_VERSION
from tests.agent.store.opened import report, steady, stored, writing
from tests.agent.store.ticks import HOUR, MONDAY, card, holder, tick

ROOT = Path(__file__).resolve().parents[3]


def test_reading_where_there_is_no_database_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(DatabaseMissing, match=r"no database at .*gua\.db: run `gua daemon` first"):
        report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)
    assert list(tmp_path.iterdir()) == []


def test_a_new_database_and_its_folder_are_not_for_everybody(tmp_path: Path) -> None:
    path = stored(tmp_path / "new" / "gua.db", steady(1, card()))
    assert stat.S_IMODE(path.stat().st_mode) & 0o027 == 0
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o027 == 0


def test_a_database_of_a_newer_gua_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(1, card()))
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(DatabaseUnusable, match="newer gua"):
        report(path, MONDAY, MONDAY + HOUR)
    with pytest.raises(DatabaseUnusable, match="newer gua"), writing(path):
        pass


@pytest.mark.parametrize("content", [b"not a database at all", b"SQLite format 3\0" + b"x" * 4000])
def test_reading_what_is_no_database_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "gua.db"
    path.write_bytes(content)
    with pytest.raises(DatabaseUnusable, match=r"^cannot read .*gua\.db: [^\n]+$"):
        report(path, MONDAY, MONDAY + HOUR)


def test_reading_another_programs_database_is_one_clear_line(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "gua.db") as connection:
        connection.execute("CREATE TABLE photos (id)")
    connection.close()
    with pytest.raises(DatabaseUnusable, match="not made by gua"):
        report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)


def test_writing_moves_a_file_that_is_no_database_aside_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    path.write_bytes(b"precious text")
    with writing(path) as writer:
        writer.write_tick(steady(1, card())[0])
        assert writer.moved_aside is not None
        assert writer.moved_aside.read_bytes() == b"precious text"
    assert report(path, MONDAY, MONDAY + HOUR)["samples"] == 1


def test_writing_moves_a_damaged_database_aside(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    path.write_bytes(b"SQLite format 3\0" + b"x" * 4000)
    with writing(path) as writer:
        assert writer.moved_aside is not None


def test_who_writes_beside_a_daemon_leaves_a_damaged_database_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    path.write_bytes(b"precious text")
    with pytest.raises(DatabaseDamaged, match="a daemon moves it aside"), writing(path, alone=False):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["gua.db"]
    assert path.read_bytes() == b"precious text"


def test_writing_refuses_another_programs_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "gua.db") as connection:
        connection.execute("CREATE TABLE photos (id)")
    connection.close()
    with pytest.raises(DatabaseUnusable, match="not made by gua"), writing(tmp_path / "gua.db"):
        pass


def test_another_machine_begins_a_new_store_and_keeps_the_history(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(2, card()))
    first = report(path, MONDAY, MONDAY + HOUR)
    stored(path, steady(1, card(), start=2), machine_id="m2")
    second = report(path, MONDAY, MONDAY + HOUR)
    assert first["host"]["store_id"] != second["host"]["store_id"]
    assert second["host"]["machine_id"] == "m2"
    assert second["samples"] == 3


def test_a_reader_beside_a_writing_daemon_sees_what_is_committed(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db") as writer:
        for number, one in enumerate(steady(5, card()), start=1):
            writer.write_tick(one)
            assert report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)["samples"] == number


def test_two_writers_in_turn_never_credit_a_second_twice(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db") as daemon, writing(tmp_path / "gua.db") as once:
        for number in range(40):
            (daemon if number % 3 else once).write_tick(
                tick(MONDAY + number * 20_000, card(holders=(holder("ada"),)), cover_ms=30_000)
            )
    found = report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)
    assert found["card_s"]["idle-held"] == 39 * 20 + 30
    (hold,) = found["holds"]
    assert hold["states"]["idle-held"] == 39 * 20 + 30


def test_a_failed_tick_leaves_nothing_and_the_next_one_is_stored(tmp_path: Path) -> None:
    good, other = steady(2, card())
    with writing(tmp_path / "gua.db") as writer:
        broken = tick(MONDAY, card(), card("GPU-b", holders=(holder(pid=2**70),)))
        with pytest.raises(OverflowError):
            writer.write_tick(broken)
        writer.write_ticks([good, other])
    found = report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)
    assert found["samples"] == 2
    assert [one["uuid"] for one in found["cards"]] == ["GPU-a"]


def test_killed_while_writing_the_database_holds_whole_ticks_only(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    code = """
        import sys
        from pathlib import Path
        from tests.agent.store.opened import writing
        from tests.agent.store.ticks import MONDAY, card, tick
        with writing(Path(sys.argv[1])) as writer:
            for n in range(1_000_000):
                writer.write_tick(tick(MONDAY + n * 1000, *(card(f"GPU-{i}") for i in range(8)), cover_ms=1000))
    """
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/agent"}
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(path)], env=environ)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not _ticks(path) > 50:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=60)
    ticks = _ticks(path)
    assert ticks > 50
    found = report(path, MONDAY, MONDAY + 24 * HOUR)
    assert found["samples"] == 8 * ticks
    assert found["card_s"]["truly-idle"] == 8 * ticks
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def _ticks(path: Path) -> int:
    try:
        return sum(report(path, MONDAY, MONDAY + 24 * HOUR)["coverage"]["ticks"].values())
    except (DatabaseMissing, DatabaseUnusable):
        return 0


@pytest.mark.parametrize("page", [3, 9, 16, 24])
def test_writing_moves_a_database_with_a_broken_page_aside(tmp_path: Path, page: int) -> None:
    path = stored(tmp_path / "gua.db", steady(30, card()))
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(bytes(4096))
    with writing(path) as writer:
        assert writer.moved_aside is not None
        writer.write_tick(steady(1, card())[0])
    assert report(path, MONDAY, MONDAY + HOUR)["samples"] == 1


@pytest.mark.parametrize("kind", ["directory", "pipe"])
def test_what_can_be_no_database_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "gua.db"
    path.mkdir() if kind == "directory" else os.mkfifo(path)
    with pytest.raises(DatabaseUnusable, match="no ordinary file"):
        report(path, MONDAY, MONDAY + HOUR)
    with pytest.raises(DatabaseUnusable, match="no ordinary file"), writing(path):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["gua.db"]


def test_reading_takes_nothing_that_only_writing_needs() -> None:
    code = "import sys, gua.store.database; print({'peewee', 'gua.store.writer'} & set(sys.modules) or 'none')"
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}/agent"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "none"


def test_what_fails_in_the_hands_of_who_reads_is_not_called_an_error_of_the_database(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", steady(1, card()))
    with pytest.raises(BrokenPipeError), open_reader(path):
        raise BrokenPipeError


def test_reading_for_too_long_is_ended_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(tmp_path / "gua.db", steady(1, card()))
    monkeypatch.setattr("gua.store.database.READ_LIMIT_S", -1.0)
    with pytest.raises(DatabaseUnusable, match="longer than -1 s: ask for less time"), open_reader(path) as reader:
        reader._session.rows(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT sum(i) FROM n"
        )
