"""The daemon's file of metrics, written in a thread of its own: a directory that hangs must not delay a tick."""

from __future__ import annotations

import contextlib
import logging
import threading
from pathlib import Path
from typing import Optional

from gua.clock import Clock
from gua.config import Settings
from gua.daemon.metrics import read_metrics
from gua.errors import GuaError
from gua.metrics.write import remove_left_behind, remove_textfile, write_textfile
from gua.model import Tick

logger = logging.getLogger(__name__)


# A tick that is this much overdue will not come soon: the file must say how things stand all the same.
_OVERDUE = 1.5
# Nor has anybody who asks for few ticks asked for a file that is old.
_LONGEST_WAIT_S = 60.0
# What could not be written anew for as many intervals says nothing of now, and is taken away.
_STALE_INTERVALS = 3


class Textfile:
    """Writes the file anew after every tick, as soon as the one before is written; an end takes it away.

    While no ticks come (a pause, a host without a card) it is written all the same: else what it says of now would
    stand for ever. A `gua.daemon.recorder.Outlet`.
    """

    def __init__(
        self,
        directory: Path,
        database: Path,
        clock: Clock,
        settings: Settings,
        per_user: bool,
        enrolment: Optional[Path] = None,
    ) -> None:
        self._directory, self._database, self._clock, self._per_user = directory, database, clock, per_user
        self._settings, self._enrolment = settings, enrolment
        self._changed, self._closing = threading.Event(), False
        self._trouble, self._written_s = "", clock.monotonic_s()
        self._thread = threading.Thread(target=self._run, name="gua-textfile", daemon=True)
        self._thread.start()

    def take(self, settings: Settings) -> None:
        """Go on under other settings."""
        self._settings = settings

    def offer(self, tick: Tick) -> None:
        """A tick was taken; the file is written from what is stored."""
        self._changed.set()

    def close(self, timeout_s: float) -> bool:
        """Take the file away; whether that was done in time."""
        self._closing = True
        self._changed.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            remove_left_behind(self._directory)
        while True:
            self._changed.wait(min(_OVERDUE * self._interval_s(), _LONGEST_WAIT_S))
            self._changed.clear()
            if self._closing:
                self._remove()
                return
            self._write()

    def _interval_s(self) -> float:
        return self._settings.interval_ms / 1000

    def _write(self) -> None:
        try:
            text = read_metrics(
                self._database,
                self._clock,
                scheduler=self._settings.scheduler,
                per_user=self._per_user,
                enrolment=self._enrolment,
            )
            write_textfile(self._directory, text)
        except GuaError as exc:
            self._failed(str(exc))
        except Exception as exc:  # noqa: BLE001 - no defect of ours may end the writing for the rest of a year
            self._failed(f"{type(exc).__name__}: {exc}")
        else:
            if self._trouble:
                logger.info("metrics are written again")
            self._trouble, self._written_s = "", self._clock.monotonic_s()

    def _failed(self, trouble: str) -> None:
        """Told when it changes, not at every tick."""
        if trouble != self._trouble:
            logger.warning("metrics are not written: %s", trouble)
        self._trouble = trouble
        if self._clock.monotonic_s() - self._written_s > _STALE_INTERVALS * self._interval_s():
            self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            remove_textfile(self._directory)
