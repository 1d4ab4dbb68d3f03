"""One daemon per database: a lock that the kernel drops with its holder, never a pid that somebody else may get."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Optional

from gua.clock import Clock
from gua.errors import GuaError
from gua.text import shown

# `is_locked` takes the lock for an instant: longer than that, it is another daemon.
_PATIENCE_S = 1.0
_RETRY_S = 0.1


def lock_path(database: Path) -> Path:
    """The lock file beside a database."""
    return database.with_name(database.name + ".lock")


class DatabaseLock:
    """Held from `acquire` until the process ends or `release`."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._fd: Optional[int] = None

    def acquire(self, clock: Clock) -> None:
        """Take the lock. Raises GuaError: another daemon has it, or its file cannot be made."""
        path = lock_path(self._database)
        try:
            path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as exc:
            raise GuaError(
                f"cannot write beside the database {shown(str(self._database), 200)}: {exc.strerror}; "
                "run as its owner, or name another with --db"
            ) from exc
        give_up_s = clock.monotonic_s() + _PATIENCE_S
        while not _try_lock(self._fd, fcntl.LOCK_EX):
            if clock.monotonic_s() >= give_up_s:
                self.release()
                raise GuaError(f"another gua daemon already samples into {shown(str(self._database), 200)}")
            clock.sleep_s(_RETRY_S)

    def release(self) -> None:
        """Let go. The file stays: removing it would let two holders each lock a file of their own."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def is_locked(database: Path) -> Optional[bool]:
    """Whether a daemon has the database; None when that cannot be told without rights. Changes nothing."""
    try:
        fd = os.open(lock_path(database), os.O_RDONLY | os.O_CLOEXEC)
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
