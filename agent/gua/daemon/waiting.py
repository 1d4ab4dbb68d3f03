"""Waiting until the database can be opened: a daemon that ends for want of room would only be started again at once."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Optional

from gua.clock import Clock
from gua.daemon.journal import ticks_text
from gua.daemon.notify import Notifier
from gua.daemon.stop import Stop
from gua.errors import DatabaseUnusable
from gua.filesystem import lacks_room
from gua.text import shown

logger = logging.getLogger(__name__)

AGAIN_S = 15.0


class Waiting:
    """Whether to wait, and for how long it has been.

    A daemon that has sampled before waits whatever it is, for nobody looks any more. One that is only starting waits
    for room, under a service manager; in anybody else's hands it fails, so that they see why.
    """

    def __init__(self, database: Path, clock: Clock, stop: Stop, notify: Notifier) -> None:
        self._folder, self._clock, self._stop, self._notify = database.parent, clock, stop, notify
        self._has_sampled = False
        self._since_s: Optional[float] = None
        self._said = ""

    def wait(self, error: DatabaseUnusable) -> None:
        """Come back when it is time to try again, or when a stop was requested. Raises `error` where nobody waits."""
        if self._stop.requested:
            return
        if not self._has_sampled and not (self._notify.is_heard and lacks_room(self._folder, error)):
            raise error
        if self._since_s is None:
            self._since_s = self._clock.monotonic_s()
        if str(error) != self._said:
            self._said = str(error)
            logger.error("nothing is sampled, trying again every %g s: %s", AGAIN_S, shown(self._said, 300))
        self._notify.ready()  # or it would be killed, and started anew, for taking so long
        self._let_pass(AGAIN_S)

    def over(self, interval_ms: int) -> None:
        """It is open."""
        if self._since_s is not None:
            lost = int((self._clock.monotonic_s() - self._since_s) * 1000 / interval_ms) + 1
            logger.warning("recovered: %s lost", ticks_text(lost))
        self._has_sampled, self._since_s, self._said = True, None, ""

    def _let_pass(self, seconds: float) -> None:
        until_s, watchdog_s = self._clock.monotonic_s() + seconds, self._notify.watchdog_s
        while (left_s := until_s - self._clock.monotonic_s()) > 0 and not self._stop.requested:
            self._notify.alive("waiting for the database: " + self._said)
            self._stop.wait(left_s if watchdog_s is None else min(left_s, watchdog_s / 3))
