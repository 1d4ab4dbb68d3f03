from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gua.errors import DatabaseDamaged, DatabaseMissing, DatabaseUnusable, GuaError
from gua.model import DEFAULT_RULE
from gua.store.database import open_reader, read_stored
from gua.store.reader import StoreReader
from gua.store.version import SCHEMA_VERSION
from tests.agent.store.opened import report, stored, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder, tick

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65534


def as_nobody(work: Callable[[], str]) -> str:
    """What `work` gives in a fork of another user, as that user cannot start our Python."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(send, work().encode())
        finally:
            os._exit(0)
    os.close(send)
    with open(receive, encoding="utf-8") as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def read_as_nobody(path: Path) -> str:
    """What a report by another user says: its samples, or the error."""
    return as_nobody(lambda: _samples(path))


def _samples(path: Path) -> str:
    try:
        return str(report(path, MONDAY, MONDAY + HOUR)["samples"])
    except GuaError as exc:
        return f"{type(exc).__name__}: {exc}"


def minutes(count: int, start: int = 0) -> list:
    return [tick(MONDAY + n * MINUTE, card(), cover_ms=MINUTE) for n in range(start, start + count)]


def test_reading_where_there_is_no_database_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(DatabaseMissing, match=r"no database at .*gua\.db: run `gua daemon` first"):
        report(tmp_path / "gua.db", MONDAY, MONDAY + HOUR)
    assert list(tmp_path.iterdir()) == []


def test_a_new_database_and_its_folder_are_not_for_everybody(tmp_path: Path) -> None:
    path = stored(tmp_path / "new" / "gua.db", minutes(1))
    assert stat.S_IMODE(path.stat().st_mode) & 0o027 == 0
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o027 == 0


def test_a_database_of_a_newer_gua_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", minutes(1))
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
        writer.write_tick(minutes(1)[0])
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
    path = stored(tmp_path / "gua.db", minutes(2))
    first = report(path, MONDAY, MONDAY + HOUR)
    stored(path, minutes(1, start=2), machine_id="m2")
    second = report(path, MONDAY, MONDAY + HOUR)
    assert first["host"]["store_id"] != second["host"]["store_id"]
    assert second["host"]["machine_id"] == "m2"
    assert second["samples"] == 3


def test_a_reader_beside_a_writing_daemon_sees_what_is_committed(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db") as writer:
        for number, one in enumerate(minutes(5), start=1):
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
    good, other = minutes(2)
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


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that another user may read but not write to, as /var/lib/gua is for the readers' group."""
    if os.getuid() != 0:
        pytest.skip("only root can read as another user")
    with tempfile.TemporaryDirectory(prefix="gua-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _publish(path: Path) -> None:
    for name in path.parent.iterdir():
        name.chmod(0o644)


def test_a_user_without_write_permission_reads_beside_the_daemon(shared: Path) -> None:
    with writing(shared / "gua.db") as writer:
        writer.write_ticks(minutes(4))
        _publish(shared / "gua.db")
        assert read_as_nobody(shared / "gua.db") == "4"


def test_a_user_without_write_permission_reads_after_the_daemon_stopped(shared: Path) -> None:
    path = stored(shared / "gua.db", minutes(4))
    _publish(path)
    assert read_as_nobody(path) == "4"
    assert [one.name for one in shared.iterdir()] == ["gua.db"]


def test_a_user_without_write_permission_reads_what_a_killed_daemon_left(shared: Path) -> None:
    path = shared / "gua.db"
    with writing(path) as writer:
        writer.write_ticks(minutes(4))
        # what is on disk the moment the daemon is killed: everything is still in the -wal
        (shared / "left").mkdir()
        for name in ("gua.db", "gua.db-wal"):
            (shared / "left" / name).write_bytes((shared / name).read_bytes())
    _publish(shared / "left" / "gua.db")
    assert read_as_nobody(shared / "left" / "gua.db") == "4"


def _fold_more_in(folder: Path) -> None:
    """As root from outside: a sync-once comes and goes, and what it wrote is in the file."""
    (folder / "asked").touch()
    deadline = time.monotonic() + 120
    while not (folder / "done").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def _read_twice(path: Path, scratch: Path) -> str:
    asked: list[int] = []

    def ask(reader: StoreReader) -> int:
        asked.append(sum(reader.sums((0, 1 << 40), ()).ticks.values()))
        if len(asked) == 1:
            _fold_more_in(scratch)
        return asked[-1]

    answer = read_stored(path, ask)
    return f"{answer} after {asked}"


def test_a_file_that_changes_under_a_reader_without_write_permission_is_read_again(shared: Path) -> None:
    path, scratch = stored(shared / "gua.db", minutes(4)), shared / "scratch"
    _publish(path)
    scratch.mkdir()
    scratch.chmod(0o777)
    writer = threading.Thread(target=_write_when_asked, args=(path, scratch))
    writer.start()
    said = as_nobody(lambda: _read_twice(path, scratch))
    writer.join()
    assert said == "7 after [4, 7]"


def _write_when_asked(path: Path, scratch: Path) -> None:
    deadline = time.monotonic() + 120
    while not (scratch / "asked").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    stored(path, minutes(3, start=4))
    (scratch / "done").touch()


def _nowhere_to_copy(path: Path, folder: Path) -> str:
    tempfile.tempdir = str(folder / "nowhere")
    return _samples(path)


def test_what_a_stopped_daemon_left_needs_no_copy(shared: Path) -> None:
    path = stored(shared / "gua.db", minutes(4))
    _publish(path)
    assert as_nobody(lambda: _nowhere_to_copy(path, shared)) == "4"


def _read_a_copy(path: Path, folder: Path) -> str:
    tempfile.tempdir = str(folder)
    with open_reader(path) as reader:
        before = sum(reader.sums((0, 1 << 40), ()).ticks.values())
        left = os.listdir(folder)
        reader.rejudge((MONDAY, MONDAY + HOUR), DEFAULT_RULE)  # lets go of its view, and takes it up again
        return f"{before} {sum(reader.sums((0, 1 << 40), ()).ticks.values())} {left}"


def test_a_copy_is_gone_from_disk_once_it_is_open(shared: Path) -> None:
    path = shared / "gua.db"
    for name in ("left", "scratch"):
        (shared / name).mkdir()
    (shared / "scratch").chmod(0o777)
    with writing(path) as writer:
        writer.write_ticks(minutes(4))
        for name in ("gua.db", "gua.db-wal"):
            (shared / "left" / name).write_bytes((shared / name).read_bytes())
    _publish(shared / "left" / "gua.db")
    assert as_nobody(lambda: _read_a_copy(shared / "left" / "gua.db", shared / "scratch")) == "4 4 []"


def test_a_user_without_any_permission_is_told_whom_to_join(shared: Path) -> None:
    path = stored(shared / "gua.db", minutes(1))
    path.chmod(0o600)
    shutil.chown(path, group="adm")
    assert read_as_nobody(path).startswith(f"DatabaseForbidden: {path} may not be read by this user: join group adm,")


def test_a_folder_that_may_not_be_entered_names_its_group(shared: Path) -> None:
    path = stored(shared / "closed" / "gua.db", minutes(1))
    path.parent.chmod(0o700)
    shutil.chown(path.parent, group="adm")
    assert read_as_nobody(path).startswith(f"DatabaseForbidden: {path} may not be read by this user: join group adm,")


def _come_and_go(path: Path, lives: int) -> None:
    """Daemons one after another; every other one ends as if killed, with everything still in the -wal."""
    for life in range(lives):
        child = os.fork()
        if child == 0:
            try:
                opened = writing(path)
                writer = opened.__enter__()
                for one in minutes(3, start=3 * life):
                    writer.write_tick(one)
                    time.sleep(0.01)
                if life % 2 == 0:
                    writer.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        time.sleep(0.01)


def test_reads_without_write_permission_never_fail_nor_go_back_while_a_daemon_comes_and_goes(shared: Path) -> None:
    path = stored(shared / "gua.db", [])
    path.chmod(0o644)
    lives = 8
    daemon = os.fork()
    if daemon == 0:
        try:
            _come_and_go(path, lives)
        finally:
            os._exit(0)
    answers = []
    while os.waitpid(daemon, os.WNOHANG) == (0, 0):
        answers.append(read_as_nobody(path))
    answers.append(read_as_nobody(path))
    assert [one for one in answers if not one.isdigit()] == []
    assert [int(one) for one in answers] == sorted(int(one) for one in answers)
    assert answers[-1] == str(3 * lives)


@pytest.mark.parametrize("page", [3, 9, 16, 24])
def test_writing_moves_a_database_with_a_broken_page_aside(tmp_path: Path, page: int) -> None:
    path = stored(tmp_path / "gua.db", minutes(30))
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(bytes(4096))
    with writing(path) as writer:
        assert writer.moved_aside is not None
        writer.write_tick(minutes(1)[0])
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
    path = stored(tmp_path / "gua.db", minutes(1))
    with pytest.raises(BrokenPipeError), open_reader(path):
        raise BrokenPipeError


def test_reading_for_too_long_is_ended_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(tmp_path / "gua.db", minutes(1))
    monkeypatch.setattr("gua.store.database.READ_LIMIT_S", -1.0)
    with pytest.raises(DatabaseUnusable, match="longer than -1 s: ask for less time"), open_reader(path) as reader:
        reader._session.rows(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT sum(i) FROM n"
        )
