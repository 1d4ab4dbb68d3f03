import os
import subprocess
import sys
from pathlib import Path

import pytest

from gua.clock import SystemClock
from gua.daemon.lock import DatabaseLock, is_locked, lock_path
from gua.errors import GuaError

HOLD = """
import pathlib, sys
from gua.clock import SystemClock
from gua.daemon.lock import DatabaseLock
DatabaseLock(pathlib.Path(sys.argv[1])).acquire(SystemClock())
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_holder_is_refused_and_a_killed_one_leaves_nothing(tmp_path: Path) -> None:
    database = tmp_path / "sub/gua.db"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert is_locked(database) is True
        with pytest.raises(GuaError, match="another gua daemon"):
            DatabaseLock(database).acquire(SystemClock())
        holder.kill()
        holder.wait(10)
    assert is_locked(database) is False
    lock = DatabaseLock(database)
    lock.acquire(SystemClock())
    lock.release()
    assert lock_path(database).exists()


def test_no_lock_file_is_no_daemon_and_looking_makes_none(tmp_path: Path) -> None:
    assert is_locked(tmp_path / "gua.db") is False
    assert list(tmp_path.iterdir()) == []


def test_a_place_one_may_not_write_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GuaError, match="--db"):
        DatabaseLock(tmp_path / "file/gua.db").acquire(SystemClock())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_lock_one_may_not_read_is_unknown(tmp_path: Path) -> None:
    lock_path(tmp_path / "gua.db").touch(mode=0o000)
    assert is_locked(tmp_path / "gua.db") is None
