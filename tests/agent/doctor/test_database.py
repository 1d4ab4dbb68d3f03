import os
from pathlib import Path
from typing import Optional

import pytest

from gua.clock import SystemClock
from gua.daemon.lock import DatabaseLock
from gua.doctor.database import (
    History,
    check_daemon,
    check_database,
    check_database_filesystem,
    check_database_rights,
    read_history,
)
from gua.location import Location
from gua.model import TickStatus
from gua.store.reader import TickRow

NOW_MS = 1_767_225_600_000


def location(path: Path) -> Location:
    return Location(path, "named by --db")


def test_no_database_yet_is_a_warning_with_its_cure(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    check = check_database(location(path), read_history(path))
    assert check.status == "warn"
    assert "`gua daemon --foreground`" in (check.cure or "")
    assert check_database_rights(path).status == "skip"
    assert not path.exists()


def test_a_file_that_is_no_database_fails(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    path.write_text("this is a text, and a rather long one at that" * 100)
    assert check_database(location(path), read_history(path)).status == "fail"


def test_rights_are_ok_when_only_the_owner_writes(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    path.touch()
    tmp_path.chmod(0o750)
    assert check_database_rights(path).status == "ok"
    tmp_path.chmod(0o770)
    assert check_database_rights(path).status == "warn"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_side_file_of_somebody_else_fails(tmp_path: Path) -> None:
    for name in ("gua.db", "gua.db-wal"):
        (tmp_path / name).touch()
    os.chown(tmp_path / "gua.db-wal", 65534, 65534)
    check = check_database_rights(tmp_path / "gua.db")
    assert check.status == "fail"
    assert "gua.db-wal" in check.summary


def test_a_network_file_system_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_database_filesystem(tmp_path / "gua.db").status == "ok"
    monkeypatch.setattr("gua.doctor.database.read_filesystem_type", lambda path: "nfs4")
    assert check_database_filesystem(tmp_path / "gua.db").status == "warn"


def test_a_full_file_system_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gua.doctor.database._free_bytes", lambda path: 5 << 20)
    assert check_database_filesystem(tmp_path / "gua.db").summary.startswith("only 5 MB")


def last(age_s: float, status: TickStatus = TickStatus.OK) -> History:
    return History(last=TickRow(NOW_MS - round(age_s * 1000), status, 30_000))


@pytest.mark.parametrize(
    ("running", "history", "gpu_less", "status"),
    [
        (True, last(10), False, "ok"),
        (True, last(10, TickStatus.PARTIAL), False, "ok"),
        (True, last(10, TickStatus.ERROR), False, "warn"),
        (True, last(3600), False, "fail"),
        (True, last(3600), True, "ok"),
        (True, History(), False, "ok"),
        (True, History(), True, "ok"),
        (False, last(10), False, "warn"),
        (False, History(), False, "warn"),
    ],
)
def test_the_daemon_is_judged_by_its_lock_and_its_last_tick(
    tmp_path: Path, running: bool, history: History, gpu_less: bool, status: str
) -> None:
    lock: Optional[DatabaseLock] = DatabaseLock(tmp_path / "gua.db") if running else None
    if lock is not None:
        lock.acquire(SystemClock())
    check = check_daemon(tmp_path / "gua.db", history, now_ms=NOW_MS, gpu_less=gpu_less)
    assert (check.status, check.details["running"]) == (status, running)
    if history.last is not None:
        assert check.details["last_tick_age_s"] == (NOW_MS - history.last.at_ms) / 1000
    if lock is not None:
        lock.release()
