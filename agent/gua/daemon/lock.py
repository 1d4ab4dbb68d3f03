"""One daemon per database: a lock that the kernel drops with its holder, never a pid that somebody else may get."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from gua.clock import Clock
from gua.daemon.record import DaemonRecord, own_record, read_record
from gua.errors import GuaError
from gua.filesystem import cure_of
from gua.text import shown

# Who looks whether a lock is taken takes it for an instant: longer than that, it is another holder.
_PATIENCE_S = 1.0
_RETRY_S = 0.1


def lock_path(database: Path) -> Path:
    """The lock file of the daemon that samples into a database."""
    return database.with_name(database.name + ".lock")


def driver_lock_path(database: Path) -> Path:
    """The lock file of the daemon that may have the driver open."""
    return database.with_name(database.name + ".driver")


class FileLock:
    """A lock by its file. The file stays: removing it would let two holders each lock a file of their own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: Optional[int] = None

    def acquire(self, clock: Clock) -> bool:
        """Take the lock, also where its file is another one since; False when another has it for a second.

        Raises OSError when its file cannot be made.
        """
        if self.holds():
            return True
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        give_up_s = clock.monotonic_s() + _PATIENCE_S
        while not _try_lock(fd, fcntl.LOCK_EX):
            if clock.monotonic_s() >= give_up_s:
                os.close(fd)
                return False
            clock.sleep_s(_RETRY_S)
        self.release()
        self._fd = fd
        return True

    def holds(self) -> bool:
        """Whether it is held by the file that is there: whoever removes that one lets others in."""
        if self._fd is None:
            return False
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return False
        except OSError:
            return True  # nobody gets in where not even this process may look
        return os.path.samestat(there, os.fstat(self._fd))

    def note(self, text: str) -> None:
        """Say in the file who holds it. Where that fails (a full disk), it says what it said before."""
        raw = text.encode()
        if self._fd is not None:
            with contextlib.suppress(OSError):  # the lock counts; this is for who asks whose it is
                os.ftruncate(self._fd, os.pwrite(self._fd, raw, 0))

    def release(self) -> None:
        """Let go, if it is held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class DatabaseLock:
    """Held from `acquire` until the process ends or `release`."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._lock = FileLock(lock_path(database))

    def acquire(self, clock: Clock) -> None:
        """Take the lock. Raises GuaError: another daemon has it, or its file cannot be made."""
        make_folder(self._database)
        try:
            self._take(clock)
        except OSError as exc:
            raise _not_writable(self._database, exc) from exc

    def keep(self, clock: Clock) -> None:
        """Take it again where its file was removed. Raises GuaError: another daemon was faster, and this one must end.

        Where no file can be made now, nobody else can make one: the next call tries again.
        """
        if not self._lock.holds():
            with contextlib.suppress(OSError):
                self._take(clock)

    def _take(self, clock: Clock) -> None:
        if not self._lock.acquire(clock):
            raise GuaError(f"{describe_holder(self._database)} already samples into {shown(str(self._database), 200)}")
        self._lock.note(own_record(self._database).to_text())

    def release(self) -> None:
        self._lock.release()


def make_folder(database: Path) -> None:
    """The folder that the database is in. Raises GuaError."""
    try:
        database.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as exc:
        raise _not_writable(database, exc) from exc


def _not_writable(database: Path, error: OSError) -> GuaError:
    return GuaError(
        f"cannot write beside the database {shown(str(database), 200)}: {error.strerror}; "
        + cure_of(error, "run as its owner, or name another with --db")
    )


def describe_holder(database: Path) -> str:
    """Who has the database, as the subject of a sentence."""
    record = holder_of(database)
    if record is None or not record.is_alive():
        return (
            "another gua daemon"
            if record is None or record.is_of_this_host()
            else (f"a gua daemon of host {shown(record.host)}")
        )
    unit = f" of {shown(record.unit)}" if record.unit else ""
    return f"another gua daemon (pid {record.pid}{unit})"


def holder_of(database: Path) -> Optional[DaemonRecord]:
    """What the lock's file says of who holds it now; None when it says nothing that can be read."""
    try:
        fd = os.open(lock_path(database), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        record = read_record(fd)
        return None if record is None else record.in_this_boot()
    except OSError:
        return None
    finally:
        os.close(fd)


def is_locked(database: Path) -> Optional[bool]:
    """Whether a daemon has the database; None when that cannot be told without rights. Changes nothing."""
    return _is_taken(lock_path(database))


def has_driver(database: Path) -> Optional[bool]:
    """Whether the database's daemon may have the driver open; None when that cannot be told. Changes nothing."""
    return _is_taken(driver_lock_path(database))


def _is_taken(path: Path) -> Optional[bool]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        return not _try_lock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def _try_lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def try_hold(database: Path) -> Iterator[bool]:
    """Keep daemons from starting meanwhile; False where one has the lock or this user may not. Makes no file.

    Where no daemon ever was, there is nothing to hold, and none that could be in its way.
    """
    try:
        fd = os.open(lock_path(database), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    except OSError:
        yield False
        return
    try:
        try:
            held = _try_lock(fd, fcntl.LOCK_EX)
        except OSError:  # a network file system wants write permission for that
            held = False
        yield held
    finally:
        os.close(fd)
