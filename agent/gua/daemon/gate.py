"""Whether the daemon may touch the driver now: not while somebody asked it to pause.

While it may, it holds a lock beside the database; so who asked can see when it has let go. The lock is taken before
the request is looked for, and the request is written before the lock is looked at: one always sees the other.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Optional

from gua.clock import Clock
from gua.daemon.lock import FileLock, driver_lock_path
from gua.daemon.pause import PauseRequest, PauseUnreadable, load_pause, pause_path, remove_pause
from gua.errors import GuaError

logger = logging.getLogger(__name__)

_Version = tuple[int, int, int]


class PauseGate:
    """The gate of one database's daemon. A request's end is kept from when it was first seen, by the time that
    passes whatever the wall clock says, also while the machine is suspended.

    keep: makes sure before every tick that the database is still this daemon's; raises GuaError when it is not.
    """

    def __init__(self, database: Path, clock: Clock, keep: Callable[[], object] = lambda: None) -> None:
        self._database = database
        self._clock = clock
        self._keep = keep
        self._said = ""
        self._lock = FileLock(driver_lock_path(database))
        self._version: Optional[_Version] = None
        self._request: Optional[PauseRequest] = None
        self._end_s: Optional[float] = None

    def enter(self) -> Optional[PauseRequest]:
        """Take the driver, and look. Where a request stands, let go of the driver and `leave`."""
        self._keep()
        try:
            self._lock.acquire(self._clock)
        except OSError as exc:  # no ticks are lost for it: nobody can write a request there either
            if str(exc) != self._said:
                logger.warning("who asks for a pause cannot see whether the driver is in use: %s", exc)
            self._said = str(exc)
        return self.look()

    def leave(self) -> None:
        """The driver is let go of."""
        self._lock.release()

    def look(self) -> Optional[PauseRequest]:
        """The request that stands now. One whose time is over is removed. Costs one look at the file's status."""
        version = _version(pause_path(self._database))
        if version != self._version:
            self._version = version
            self._request = None if version is None else self._load()
        if self._request is not None and self._end_s is not None and self._passed_s() >= self._end_s:
            self._request = None
            self._remove(version)
        return self._request

    def _load(self) -> Optional[PauseRequest]:
        try:
            request = load_pause(self._database)
        except PauseUnreadable as exc:
            logger.error("%s", exc)
            return None
        left_ms = None if request is None else request.left_ms(self._clock.now_ms())
        self._end_s = None if left_ms is None else self._passed_s() + left_ms / 1000
        return request

    def _passed_s(self) -> float:
        return self._clock.monotonic_s() + self._clock.suspended_s()

    def _remove(self, version: Optional[_Version]) -> None:
        try:
            # Not one that was asked for this very moment
            if _version(pause_path(self._database)) == version:
                remove_pause(self._database)
        except GuaError as exc:
            logger.warning("a pause that is over cannot be cleared: %s", exc)


def _version(path: Path) -> Optional[_Version]:
    """What tells one content of the file from the next; None: no file."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
