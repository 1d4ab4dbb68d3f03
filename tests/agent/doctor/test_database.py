import contextlib
import os
import sqlite3
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
    check_database_integrity,
    check_database_rights,
    good_tick,
    look,
    no_answer,
    read_history,
)
from gua.location import Location
from gua.model import TickStatus
from gua.store.reader import TickRow
from tests.agent.store.opened import SetClock, writing

NOW_MS = 1_767_225_600_000


def location(path: Path) -> Location:
    return Location(path, "named by --db")


def test_no_database_yet_is_a_warning_with_its_cure(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    check = check_database(location(path), read_history(path, SetClock(NOW_MS)))
    assert check.status == "warn"
    assert "`gua daemon`" in (check.cure or "")
    assert check_database_rights(path).status == "skip"
    assert not path.exists()


def test_a_file_that_is_no_database_fails(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    path.write_text("this is a text, and a rather long one at that" * 100)
    assert check_database(location(path), read_history(path, SetClock(NOW_MS))).status == "fail"


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


def last(age_s: float, status: TickStatus = TickStatus.OK, paused_s: Optional[float] = None) -> History:
    paused_ms = None if paused_s is None else NOW_MS - round(paused_s * 1000)
    return History(last=TickRow(NOW_MS - round(age_s * 1000), status, 30_000), paused_ms=paused_ms)


@pytest.mark.parametrize(
    ("running", "history", "gpu_less", "status"),
    [
        (True, last(10), False, "ok"),
        (True, last(10, TickStatus.PARTIAL), False, "ok"),
        (True, last(10, TickStatus.ERROR), False, "warn"),
        (True, last(10, TickStatus.UNRESPONSIVE), False, "warn"),
        (True, last(90), False, "ok"),
        (True, last(91), False, "fail"),
        (True, last(3600), False, "fail"),
        (True, last(3600), True, "ok"),
        (True, last(3600, paused_s=3590), False, "warn"),
        (True, History(), False, "ok"),
        (True, History(), True, "ok"),
        (False, last(10), False, "warn"),
        (False, last(3600, paused_s=3590), False, "warn"),
        (False, History(), False, "warn"),
        (None, last(10), False, "ok"),
        (None, last(3600), False, "warn"),
        (None, History(), False, "skip"),
    ],
)
def test_the_daemon_is_judged_by_its_lock_and_its_last_tick(
    running: Optional[bool], history: History, gpu_less: bool, status: str
) -> None:
    check = check_daemon(running, history, now_ms=NOW_MS, gpu_less=gpu_less)
    assert (check.status, check.details["running"]) == (status, running)
    if history.last is not None:
        assert check.details["last_tick_age_s"] == (NOW_MS - history.last.at_ms) / 1000


@pytest.mark.parametrize(
    ("running", "history", "told"),
    [
        (True, last(12), "last tick ok, 12 s old"),
        (None, last(12, TickStatus.PARTIAL), "last tick partial, 12 s old"),
        (False, last(12), None),
        (True, last(12, TickStatus.ERROR), None),
        (True, last(12, TickStatus.UNRESPONSIVE), None),
        (True, last(91), None),
        (True, last(12, paused_s=5), None),
        (True, History(), None),
    ],
)
def test_only_a_daemon_that_samples_well_now_is_said_to(
    running: Optional[bool], history: History, told: Optional[str]
) -> None:
    assert good_tick(running, history, now_ms=NOW_MS) == told


def test_a_pause_is_no_daemon_that_is_stuck() -> None:
    check = check_daemon(True, last(3600, paused_s=600), now_ms=NOW_MS, gpu_less=False)
    assert (check.summary, check.cure) == ("paused for 10 min: nothing is sampled", "`gua resume`")


def test_the_lock_is_looked_at_where_the_database_is(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    assert look(path, NOW_MS).running is False
    lock = DatabaseLock(path)
    lock.acquire(SystemClock())
    assert look(path, NOW_MS).running is True
    lock.release()


def test_a_pause_is_read_until_it_is_over(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    with writing(path) as writer:
        writer.begin_pause(NOW_MS - 60_000)
        assert read_history(path, SetClock(NOW_MS)).paused_ms == NOW_MS - 60_000
        writer.end_pause(NOW_MS - 10_000)
    assert read_history(path, SetClock(NOW_MS)).paused_ms is None


def test_a_whole_database_is_said_to_be_whole(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    with writing(path):
        pass
    assert check_database_integrity(read_history(path, SetClock(NOW_MS))).status == "ok"


def test_a_page_that_was_overwritten_is_found(tmp_path: Path) -> None:
    path = tmp_path / "gua.db"
    with writing(path):
        pass
    size = path.stat().st_size
    with path.open("r+b") as file:  # all but the schema, which is on the first pages
        file.seek(size // 2 // 4096 * 4096)
        file.write(b"\xff" * (size - file.tell()))
    history = read_history(path, SetClock(NOW_MS))
    checks = check_database(location(path), history), check_database_integrity(history)
    assert "fail" in {check.status for check in checks}
    assert "damaged" in "".join(check.summary + (check.cure or "") for check in checks)


def test_a_database_too_large_to_look_through_is_left_out_and_not_called_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gua.db"
    with writing(path):
        pass
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
            " WHERE i < 100000) SELECT i, hex(i) AS text FROM n"
        )
        connection.commit()
    monkeypatch.setattr("gua.doctor.database._INTEGRITY_S", 0.0)
    history = read_history(path, SetClock(NOW_MS))
    check = check_database_integrity(history)
    assert (history.error, check.status) == (None, "skip")
    assert check.summary.startswith("too large")


def test_a_place_that_does_not_answer_fails_and_says_so(tmp_path: Path) -> None:
    storage = no_answer(tmp_path / "gua.db")
    assert (storage.filesystem.status, storage.running) == ("fail", None)
    assert check_database(location(tmp_path / "gua.db"), storage.history).summary.endswith("did not answer in time")
