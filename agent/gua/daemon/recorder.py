"""Where a daemon's ticks go: into the store first, and then to whoever wants the newest one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional, Protocol

from gua import __version__
from gua.config import Settings
from gua.model import KnownDevice, Tick
from gua.store.retention import Retention
from gua.store.writer import StoreWriter


class Outlet(Protocol):
    """Takes the newest tick elsewhere. `offer` never waits and never raises; `gua.cloud.push.Pusher` is one."""

    def offer(self, tick: Tick) -> None: ...

    def close(self, timeout_s: float) -> bool:
        """End within that time; False when something is left behind."""
        ...


class Recorder:
    """The `TickWriter` of a daemon. A run begins with the first tick (or pause) under its settings.

    kind: of the run, `daemon` or `demo`.
    """

    def __init__(self, store: StoreWriter, kind: str, settings: Settings) -> None:
        self._store = store
        self._kind = kind
        self._settings = settings
        self._begun = False
        self._outlets: list[Outlet] = []

    def begin_run(self) -> None:
        """Begin a run under the settings in force, unless one is under way. Raises DatabaseUnusable."""
        if not self._begun:
            self._store.begin_run(self._kind, self._settings.interval_ms, self._settings.rule, __version__)
            self._begun = True

    def take(self, settings: Settings) -> None:
        """Record under other settings from the next tick on: a new run where they are a run's, else the same one."""
        old, self._settings = self._settings, settings
        if (old.interval_ms, old.rule) != (settings.interval_ms, settings.rule):
            self._begun = False
        if self._kind != "demo":
            self._store.keep(Retention(settings.raw_retention_ms, settings.user_retention_ms))

    def tell(self, outlets: Sequence[Outlet]) -> None:
        """From now on these are given every tick."""
        self._outlets = list(outlets)

    def known_devices(self) -> Sequence[KnownDevice]:
        return self._store.known_devices()

    def write_tick(self, tick: Tick) -> None:
        """Store it. Whatever became of that, the others hear of it: what was seen was seen."""
        try:
            self.begin_run()
            self._store.write_tick(tick)
        finally:
            for outlet in self._outlets:
                outlet.offer(tick)

    def begin_pause(self, now_ms: int, until_ms: Optional[int]) -> None:
        self.begin_run()
        self._store.begin_pause(now_ms, until_ms)

    def end_pause(self, now_ms: int) -> None:
        self._store.end_pause(now_ms)
