"""What happens to a daemon's files behind its back, and daemons that start where they cannot work yet."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.running import (
    command,
    environment,
    no_daemon_left,
    pid_of_daemon,
    run_gua,
    running_daemon,
    tick_statuses,
    wait_until,
)

pytestmark = pytest.mark.processes

# On a terminal of its own, as a person's shell starts it; what follows is the command line.
ON_A_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)


@pytest.fixture(autouse=True)
def _tidy(tmp_path: Path) -> Iterator[None]:
    with no_daemon_left(tmp_path):
        yield


def wait_for_ticks(home: Path, number: int) -> None:
    wait_until(lambda: len(tick_statuses(home / "gua.db")) >= number, f"{number} ticks")


def test_a_database_that_is_removed_is_begun_anew(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--fake") as daemon:
        wait_for_ticks(tmp_path, 3)
        (tmp_path / "gua.db").unlink()
        wait_for_ticks(tmp_path, 2)
        assert daemon.log().count("was removed or replaced while it was open: going on with what is there now") == 1
        assert daemon.process.poll() is None
    with contextlib.closing(sqlite3.connect(tmp_path / "gua.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_folder_that_is_removed_with_all_that_is_in_it_is_made_again(tmp_path: Path) -> None:
    database = tmp_path / "data/gua.db"
    with running_daemon(tmp_path, "--fake", GUA_DB=str(database)) as daemon:
        wait_for_ticks(tmp_path / "data", 2)
        (tmp_path / "data").rename(tmp_path / "away")
        shutil.rmtree(tmp_path / "away")
        wait_for_ticks(tmp_path / "data", 2)
        wait_until(lambda: pid_of_daemon(tmp_path / "data") == daemon.process.pid, "its name in the new lock")
        assert (tmp_path / "data/gua.pid").read_text().splitlines()[0] == str(daemon.process.pid)
        second = run_gua(tmp_path, "daemon", "--foreground", "--fake", GUA_DB=str(database))
        assert second.returncode == 1
        assert "already samples into" in second.stderr


def test_a_lock_that_is_removed_is_taken_again(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--fake") as daemon:
        wait_for_ticks(tmp_path, 1)
        for name in ("gua.db.lock", "gua.db.driver"):
            (tmp_path / name).unlink()
        wait_until(lambda: pid_of_daemon(tmp_path) == daemon.process.pid, "its name in the new lock")
        second = run_gua(tmp_path, "start", "--fake")
        assert second.returncode == 1
        assert f"another gua daemon (pid {daemon.process.pid}) already samples" in second.stderr
        assert run_gua(tmp_path, "pause").stdout.endswith("the daemon has let go of the driver\n")


def test_of_two_daemons_on_one_database_the_one_without_the_lock_ends(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--fake") as first:
        wait_for_ticks(tmp_path, 1)
        first.process.send_signal(signal.SIGSTOP)
        (tmp_path / "gua.db.lock").unlink()
        done = run_gua(tmp_path, "start", "--fake", "--interval", "200ms")
        assert done.returncode == 0, done.stderr
        first.process.send_signal(signal.SIGCONT)
        first.process.wait(90)
        assert first.process.returncode == 1
        said = f"another gua daemon (pid {pid_of_daemon(tmp_path)}) already samples into {tmp_path}/gua.db"
        assert said in first.log().splitlines()[-1]
        assert "Traceback" not in first.log()
    wait_for_ticks(tmp_path, len(tick_statuses(tmp_path / "gua.db")) + 2)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for order in (("start",), ("daemon", "--foreground")):
        done = run_gua(tmp_path, *order, "--fake", "--db", str(tmp_path / "file/gua.db"))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.splitlines()[-1].startswith(f"gua: cannot write beside the database {tmp_path}/file/gua.db")


def test_it_outlives_a_terminal_that_nohup_said_it_should(tmp_path: Path) -> None:
    terminal, side = os.openpty()
    line = command("daemon", "--foreground", "--fake", "--interval", "200ms")
    with (tmp_path / "out").open("wb") as out:
        daemon = subprocess.Popen(
            [sys.executable, "-c", ON_A_TERMINAL, "nohup", *line],
            env=environment(tmp_path),
            stdin=side,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    os.close(side)
    try:
        wait_for_ticks(tmp_path, 1)
        os.close(terminal)
        wait_until(lambda: "settings read again" in (tmp_path / "out").read_text(), "the end of the terminal")
        wait_for_ticks(tmp_path, len(tick_statuses(tmp_path / "gua.db")) + 2)
        assert daemon.poll() is None
    finally:
        daemon.kill()
        daemon.wait(90)
