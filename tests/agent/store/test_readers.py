"""Reading by another user, who may not write: beside a daemon, after it, and while it comes and goes."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gua.errors import GuaError
from gua.model import DEFAULT_RULE
from gua.store.database import open_reader, read_stored
from gua.store.reader import StoreReader
from tests.agent.store.opened import report, steady, stored, writing
from tests.agent.store.ticks import HOUR, MONDAY, card

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
        writer.write_ticks(steady(4, card()))
        _publish(shared / "gua.db")
        assert read_as_nobody(shared / "gua.db") == "4"


def test_a_user_without_write_permission_reads_after_the_daemon_stopped(shared: Path) -> None:
    path = stored(shared / "gua.db", steady(4, card()))
    _publish(path)
    assert read_as_nobody(path) == "4"
    assert [one.name for one in shared.iterdir()] == ["gua.db"]


def test_a_user_without_write_permission_reads_what_a_killed_daemon_left(shared: Path) -> None:
    path = shared / "gua.db"
    with writing(path) as writer:
        writer.write_ticks(steady(4, card()))
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
    path, scratch = stored(shared / "gua.db", steady(4, card())), shared / "scratch"
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
    stored(path, steady(3, card(), start=4))
    (scratch / "done").touch()


def _nowhere_to_copy(path: Path, folder: Path) -> str:
    tempfile.tempdir = str(folder / "nowhere")
    return _samples(path)


def test_what_a_stopped_daemon_left_needs_no_copy(shared: Path) -> None:
    path = stored(shared / "gua.db", steady(4, card()))
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
        writer.write_ticks(steady(4, card()))
        for name in ("gua.db", "gua.db-wal"):
            (shared / "left" / name).write_bytes((shared / name).read_bytes())
    _publish(shared / "left" / "gua.db")
    assert as_nobody(lambda: _read_a_copy(shared / "left" / "gua.db", shared / "scratch")) == "4 4 []"


def test_a_user_without_any_permission_is_told_whom_to_join(shared: Path) -> None:
    path = stored(shared / "gua.db", steady(1, card()))
    path.chmod(0o600)
    shutil.chown(path, group="adm")
    assert read_as_nobody(path).startswith(f"DatabaseForbidden: {path} may not be read by this user: join group adm,")


def test_a_folder_that_may_not_be_entered_names_its_group(shared: Path) -> None:
    path = stored(shared / "closed" / "gua.db", steady(1, card()))
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
                for one in steady(3, card(), start=3 * life):
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
