import fcntl
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gua.daemon.lock import lock_path
from gua.daemon.pid_file import look_after, pid_path, remove_pid_file, write_pid_file
from gua.daemon.record import DaemonRecord, own_record


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "gua.db"


def test_it_lies_beside_the_database_and_is_never_the_database() -> None:
    assert pid_path(Path("/var/lib/gua/gua.db")) == Path("/var/lib/gua/gua.pid")
    assert pid_path(Path("/x/odd.pid")) == Path("/x/odd.pid.pid")


def test_without_a_file_there_is_nothing_to_say(database: Path) -> None:
    assert look_after(pid_path(database), database) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty; cleared stale pid file"),
        ("\0\0\0", "it is empty; cleared stale pid file"),  # what a crash leaves on some file systems
        ("4194304000\n", "its daemon is gone; cleared stale pid file"),
        ("1\n", "pid 1 belongs to another process; cleared stale pid file"),  # as older programs wrote it
    ],
)
def test_a_stale_one_is_cleared_and_said(database: Path, text: str, said: str) -> None:
    path = pid_path(database)
    path.write_text(text)
    told = look_after(path, database)
    assert told is not None
    assert told.startswith(said), told
    assert not path.exists()


def test_a_reused_pid_is_cleared_and_the_other_process_left_alone(database: Path) -> None:
    mine = own_record(database, {})
    pid_path(database).write_text(replace(mine, start_ticks=(mine.start_ticks or 0) - 1).to_text())
    told = look_after(pid_path(database), database)
    assert told is not None
    assert f"pid {mine.pid} belongs to another process; cleared" in told


def test_one_from_before_the_boot_is_cleared_though_its_pid_and_start_exist_again(database: Path) -> None:
    pid_path(database).write_text(replace(own_record(database, {}), boot_id="before").to_text())
    assert "cleared stale pid file" in (look_after(pid_path(database), database) or "")
    assert not pid_path(database).exists()


def left_alone(path: Path, database: Path, record: DaemonRecord, said: str) -> None:
    path.write_text(record.to_text())
    told = look_after(path, database)
    assert told is not None
    assert said in told
    assert path.read_text() == record.to_text()


def test_one_of_another_host_or_of_a_daemon_that_lives_is_left_alone(database: Path) -> None:
    mine, path = own_record(database, {}), pid_path(database)
    left_alone(path, database, replace(mine, machine_id="other", host="gpu07"), "belongs to host gpu07; it stays")
    left_alone(path, database, replace(mine, database="/other.db"), f"the gua daemon (pid {mine.pid}) of /other.db")


def test_a_daemon_writes_over_no_file_of_another_that_may_live(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mine, path = own_record(database, {}), pid_path(database)
    elsewhere = replace(mine, machine_id="other", host="gpu07")
    for record, stays in [
        (replace(elsewhere, database="/home/alice/other.db"), True),
        (replace(mine, database="/other.db"), True),
        (elsewhere, False),  # whose lock we have: it is gone
        (replace(mine, database="/other.db", start_ticks=1), False),
        (DaemonRecord(pid=1), False),
    ]:
        path.write_text(record.to_text())
        caplog.clear()
        write_pid_file(path, mine)
        assert path.read_text() == (record if stays else mine).to_text()
        assert ["no pid file is written" in line.getMessage() for line in caplog.records] == [True] * stays


def test_what_is_no_pid_file_is_never_touched(database: Path) -> None:
    thesis = database.with_name("thesis.tex")
    thesis.write_text("\\documentclass{article}\n")
    assert "is no pid file; it stays as it is" in (look_after(thesis, database) or "")
    write_pid_file(thesis, own_record(database, {}))
    remove_pid_file(thesis, own_record(database, {}))
    assert thesis.read_text() == "\\documentclass{article}\n"


def test_a_link_or_a_pipe_in_its_place_is_told_and_holds_nobody_up(database: Path) -> None:
    path = pid_path(database)
    os.mkfifo(path)
    assert "cannot be read: not a plain file" in (look_after(path, database) or "")
    path.unlink()
    (database.parent / "other").write_text("7\n")
    path.symlink_to(database.parent / "other")
    assert "cannot be read" in (look_after(path, database) or "")
    assert path.is_symlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_one_that_may_not_be_read_is_told(database: Path) -> None:
    pid_path(database).touch(mode=0o000)
    assert "cannot be read: Permission denied" in (look_after(pid_path(database), database) or "")


def test_one_is_not_cleared_while_a_daemon_begins(database: Path) -> None:
    path = pid_path(database)
    path.write_text("4194304000\n")
    with lock_path(database).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "cannot be removed" in (look_after(path, database) or "")
    assert path.exists()


def test_only_its_own_file_is_taken_away(database: Path) -> None:
    mine, path = own_record(database, {}), pid_path(database)
    write_pid_file(path, mine)
    assert path.read_text().splitlines()[0] == str(os.getpid())
    remove_pid_file(path, replace(mine, pid=mine.pid + 1))
    assert path.exists()
    remove_pid_file(path, mine)
    assert not path.exists()
    assert list(database.parent.iterdir()) == []


def test_where_it_cannot_be_written_a_line_says_so_and_nothing_else(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_pid_file(database.parent / "no/such/gua.pid", own_record(database, {}))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
