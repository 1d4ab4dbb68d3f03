"""`gua pause` and `gua resume`: the request's file, the gate, and a real daemon that lets go of the stub's driver."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.clock import SystemClock
from gua.daemon.gate import PauseGate
from gua.daemon.lock import has_driver
from gua.daemon.pause import (
    LONGEST_MS,
    PauseRequest,
    PauseUnreadable,
    load_pause,
    parse_pause,
    pause_path,
    remove_pause,
    save_pause,
)
from gua.errors import GuaError
from tests.agent.fakes import FakeClock
from tests.agent.running import Daemon, add_pci_card, environment, run_gua, running_daemon, tick_statuses, wait_until
from tests.nvml_stub import Card, Scene

NOW_MS = FakeClock().now_ms()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "gua.db"


def test_a_request_comes_back_as_it_was_saved_and_only_its_owner_may_write_it(database: Path) -> None:
    request = PauseRequest(NOW_MS, NOW_MS + 600_000, "EXAMPLE\\alice")
    save_pause(database, PauseRequest(0, None, "x"))
    save_pause(database, request)
    assert load_pause(database) == request
    assert stat.S_IMODE(pause_path(database).stat().st_mode) == 0o640
    assert [path.name for path in database.parent.iterdir()] == ["gua.db.pause"]
    assert (remove_pause(database), remove_pause(database), load_pause(database)) == (True, False, None)


RUBBISH = (b"", b"{", b"[1]", b"7", b"\xff\xfe", b"[" * 4000, b'{"asked_ms": 1}')


@pytest.mark.parametrize("raw", RUBBISH, ids=repr)
def test_rubbish_is_no_request(database: Path, raw: bytes) -> None:
    pause_path(database).write_bytes(raw)
    with pytest.raises(PauseUnreadable, match=r"ignored.*gua resume"):
        load_pause(database)


@pytest.mark.parametrize(
    "wrong",
    [
        {"until_ms": -1},
        {"until_ms": True},
        {"until_ms": NOW_MS - 1},
        {"until_ms": NOW_MS + LONGEST_MS + 1},
        {"until_ms": 1e30},
        {"asked_ms": 253_402_300_800_000},  # in the year 10000, which has no way to be written
        {"asked_ms": 2**53 - 9, "until_ms": 2**53 - 1},
        {"asked_ms": None},
        {"asked_ms": "now"},
        {"by": 5},
    ],
    ids=repr,
)
def test_a_request_that_makes_no_sense_is_none(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no"):
        parse_pause(json.dumps({"asked_ms": NOW_MS, "until_ms": None, "by": "a", **wrong}).encode())


@pytest.mark.parametrize("kind", ["pipe", "directory", "link"])
def test_what_is_no_plain_file_is_ignored_and_holds_nobody_up(database: Path, kind: str) -> None:
    path = pause_path(database)
    make = {"pipe": os.mkfifo, "directory": os.mkdir, "link": lambda target: os.symlink("/dev/zero", target)}
    make[kind](path)
    with pytest.raises(PauseUnreadable):
        load_pause(database)


def test_a_place_one_may_not_write_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GuaError, match="as root"):
        save_pause(tmp_path / "file/gua.db", PauseRequest(NOW_MS, None, "a"))


def test_a_full_disk_wants_room_and_not_another_user(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(GuaError, match=r"No space left on device; make room there$"):
        save_pause(database, PauseRequest(NOW_MS, None, "a"))
    assert list(database.parent.iterdir()) == []


def test_where_no_daemon_ever_was_there_is_nothing_to_pause(tmp_path: Path) -> None:
    with pytest.raises(GuaError, match=r"no directory .*/none: no daemon ever sampled into it"):
        save_pause(tmp_path / "none/gua.db", PauseRequest(0, None, "root"))


@given(st.integers(0, 2**47), st.integers(0, LONGEST_MS), st.integers(0, 2**52))
def test_a_pause_never_lasts_longer_than_was_asked_whatever_the_clock_says(asked: int, lasts: int, now: int) -> None:
    request = PauseRequest(asked, asked + lasts, "a")
    assert parse_pause(json.dumps(vars(request)).encode()) == request
    left_ms = request.left_ms(now)
    assert left_ms is not None
    assert 0 <= left_ms <= lasts
    assert (left_ms == 0) == (now >= asked + lasts or lasts == 0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def gate(database: Path, clock: FakeClock) -> Iterator[PauseGate]:
    gate = PauseGate(database, clock)
    yield gate
    gate.leave()


def test_a_gate_shows_who_has_the_driver_and_ends_a_pause_by_itself(
    gate: PauseGate, database: Path, clock: FakeClock
) -> None:
    assert has_driver(database) is False
    assert gate.enter() is None
    assert has_driver(database) is True
    request = PauseRequest(clock.now_ms(), clock.now_ms() + 600_000, "alice")
    save_pause(database, request)
    assert gate.look() == request
    gate.leave()
    assert has_driver(database) is False
    clock.sleep_s(599.0)
    assert gate.look() == request
    clock.sleep_s(1.0)
    assert gate.look() is None
    assert not pause_path(database).exists()


def test_time_in_which_the_machine_was_suspended_counts_as_paused(
    gate: PauseGate, database: Path, clock: FakeClock
) -> None:
    save_pause(database, PauseRequest(clock.now_ms(), clock.now_ms() + 600_000, "alice"))
    assert gate.look() is not None
    clock.suspend(600.0)
    assert gate.look() is None


def test_a_new_request_replaces_the_one_that_stands(gate: PauseGate, database: Path, clock: FakeClock) -> None:
    save_pause(database, PauseRequest(clock.now_ms(), clock.now_ms() + 60_000, "alice"))
    assert gate.look() is not None
    save_pause(database, PauseRequest(clock.now_ms(), None, "bob"))
    clock.sleep_s(1e7)
    standing = gate.look()
    assert standing is not None
    assert standing.by == "bob"
    remove_pause(database)
    assert gate.look() is None


def test_a_request_whose_time_was_over_before_the_daemon_came_stops_nothing(
    gate: PauseGate, database: Path, clock: FakeClock
) -> None:
    save_pause(database, PauseRequest(clock.now_ms() - 60_000, clock.now_ms() - 1, "alice"))
    assert gate.enter() is None


def test_rubbish_in_its_place_is_said_once_and_stops_nothing(
    gate: PauseGate, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pause_path(database).write_bytes(b"rubbish")
    with caplog.at_level(logging.INFO):
        assert [gate.look() for _ in range(3)] == [None] * 3
    assert len(caplog.records) == 1


# From here on real processes.

TWO_CARDS = Scene(cards=(Card("GPU-a", util=93), Card("GPU-b")))


def _holds_the_driver(daemon: Daemon) -> bool:
    """Whether the daemon has a child: nothing else loads the driver's library."""
    children = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
    return bool(children)


def _count_ticks(home: Path) -> int:
    return len(tick_statuses(home / "gua.db"))


def _paused_spans(database: Path) -> int:
    from gua.store.database import open_reader

    with open_reader(database) as reader:
        return len(reader.pauses((0, 2**50)))


@pytest.mark.processes
def test_a_paused_daemon_has_no_child_takes_no_tick_and_goes_on_when_resumed(tmp_path: Path, nvml_scene: Path) -> None:
    add_pci_card(tmp_path)
    TWO_CARDS.save(nvml_scene)
    with running_daemon(tmp_path) as daemon:
        wait_until(lambda: _count_ticks(tmp_path) >= 2, "ticks")
        assert _holds_the_driver(daemon)
        done = run_gua(tmp_path, "pause")
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "the daemon has let go of the driver"), done
        assert not _holds_the_driver(daemon)
        before = _count_ticks(tmp_path)
        once = run_gua(tmp_path, "sync-once", "--push", "never")
        assert (once.returncode, once.stdout) == (4, "")
        assert "paused until `gua resume`" in once.stderr
        assert (_count_ticks(tmp_path), _holds_the_driver(daemon)) == (before, False)
        wait_until(lambda: _paused_spans(tmp_path / "gua.db") == 1, "the pause in the store")
        done = run_gua(tmp_path, "resume")
        assert done.stdout == "the pause is over; the daemon samples within a second\n"
        wait_until(lambda: _count_ticks(tmp_path) >= before + 2, "ticks after the pause")
        assert daemon.log().count("paused until") == 1
        assert daemon.log().count("the pause is over") == 1
    assert set(tick_statuses(tmp_path / "gua.db")) == {"ok"}


@pytest.mark.processes
def test_a_pause_outlives_the_daemon_and_ends_by_itself(tmp_path: Path, nvml_scene: Path) -> None:
    TWO_CARDS.save(nvml_scene)
    done = run_gua(tmp_path, "pause", "--for", "1h")
    assert done.returncode == 0
    assert "no gua daemon samples into this database; one that starts will wait" in done.stdout
    with running_daemon(tmp_path) as daemon:
        wait_until(lambda: "paused until" in daemon.log(), "its line")
        now_ms = SystemClock().now_ms()  # in place of the hour, which a test cannot wait for
        save_pause(tmp_path / "gua.db", PauseRequest(now_ms, now_ms + 1500, "root"))
        wait_until(lambda: _count_ticks(tmp_path) >= 2, "ticks after the pause")
    assert not pause_path(tmp_path / "gua.db").exists()


@pytest.mark.parametrize("words", [("--for", "soon"), ("--for", "2000d")], ids=repr)
def test_a_wrong_duration_is_one_line_and_asks_for_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run_gua(tmp_path, "pause", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not pause_path(tmp_path / "gua.db").exists()


def test_resume_without_a_pause_says_so(tmp_path: Path) -> None:
    done = run_gua(tmp_path, "resume")
    assert (done.returncode, done.stdout) == (0, "there was no pause; no gua daemon runs here\n")


AS_OWNER = """
import os
from pathlib import Path
from gua import privileges
from gua.daemon.pause import PauseRequest, save_pause
privileges._take_identity(os.stat("."))
save_pause(Path("gua.db"), PauseRequest(1, None, "root"))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_what_root_asks_for_belongs_to_the_databases_owner(tmp_path: Path) -> None:
    directory = tmp_path / "gua"
    directory.mkdir()
    os.chown(directory, 65534, 4)
    command = [sys.executable, "-c", AS_OWNER]
    subprocess.run(command, check=True, cwd=directory, env=environment(tmp_path), timeout=60)
    found = (directory / "gua.db.pause").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (65534, 4, 0o640)
