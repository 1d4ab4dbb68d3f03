"""The driver's library was replaced beneath a running daemon: no tick shows it, and so it is looked for."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

from gua.clock import Clock
from gua.daemon.bus import Bus
from gua.driver_files import SAMPLES_ON, read_driver_files
from gua.model import Tick, TickStatus

# Two small files and the loader's cache.
_REPEAT_S = 60.0


class WithLibrary:
    """A `Bus` that tells, beside what another one does, that sampling will not outlive this daemon."""

    def __init__(self, bus: Bus, procfs: Path, clock: Clock) -> None:
        self._bus, self._procfs, self._clock = bus, procfs, clock
        self._looked_s: Optional[float] = None
        self._troubles: frozenset[str] = frozenset()

    def has_no_gpu(self) -> bool:
        return self._bus.has_no_gpu()

    def troubles(self, tick: Tick) -> frozenset[str]:
        told = self._bus.troubles(tick)
        if tick.status not in (TickStatus.OK, TickStatus.PARTIAL):
            return told  # then the driver itself says what is wrong
        now_s = self._clock.monotonic_s()
        if self._looked_s is None or now_s - self._looked_s >= _REPEAT_S:
            self._looked_s = now_s
            files = read_driver_files(self._procfs)
            self._troubles = frozenset({f"{files}: the daemon {SAMPLES_ON}"}) if files.differ else frozenset()
        return told | self._troubles
