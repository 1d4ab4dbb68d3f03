"""The daemon's file of metrics, written in a thread of its own: a directory that hangs must not delay a tick."""

from __future__ import annotations

import contextlib
import logging
import threading
from pathlib import Path

from gua.clock import Clock
from gua.config import Settings
from gua.errors import GuaError
from gua.metrics.read import read_metrics, remove_textfile, write_textfile
from gua.model import Tick

logger = logging.getLogger(__name__)


class Textfile:
    """Writes the file anew after every tick, as soon as the one before is written; an end takes it away.

    A `gua.daemon.recorder.Outlet`.
    """

    def __init__(self, directory: Path, database: Path, clock: Clock, settings: Settings, per_user: bool) -> None:
        self._directory, self._database, self._clock = directory, database, clock
        self._scheduler, self._per_user = settings.scheduler, per_user
        self._changed, self._closing = threading.Event(), False
        self._trouble = ""
        self._thread = threading.Thread(target=self._run, name="gua-textfile", daemon=True)
        self._thread.start()

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
        while True:
            self._changed.wait()
            self._changed.clear()
            if self._closing:
                with contextlib.suppress(OSError):
                    remove_textfile(self._directory)
                return
            self._write()

    def _write(self) -> None:
        try:
            text = read_metrics(self._database, self._clock, scheduler=self._scheduler, per_user=self._per_user)
            write_textfile(self._directory, text)
        except GuaError as exc:
            self._say(str(exc))
        except Exception as exc:  # noqa: BLE001 - no defect of ours may end the writing for the rest of a year
            self._say(f"{type(exc).__name__}: {exc}")
        else:
            if self._trouble:
                logger.info("metrics are written again")
            self._trouble = ""

    def _say(self, trouble: str) -> None:
        """Told when it changes, not at every tick."""
        if trouble != self._trouble:
            logger.warning("metrics are not written: %s", trouble)
        self._trouble = trouble
