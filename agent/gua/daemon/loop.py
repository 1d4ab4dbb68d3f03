"""The tick loop. It alone knows when; what a tick is comes from the source, where it goes is the writer's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Optional, Protocol

from gua.clock import Clock
from gua.collect import TickSource
from gua.daemon.journal import TickJournal
from gua.daemon.notify import Notifier
from gua.daemon.schedule import Schedule
from gua.daemon.stop import Stop, StopRequested
from gua.errors import DatabaseDamaged
from gua.model import KnownDevice, Tick, TickStatus

logger = logging.getLogger(__name__)


class TickWriter(Protocol):
    """Where ticks go."""

    def known_devices(self) -> Sequence[KnownDevice]: ...

    def write_tick(self, tick: Tick) -> None: ...


class TickLoop:
    """Ticks at every deadline until told to stop.

    has_no_gpu: asked when a tick has no card and none was ever known: True on a host without any.
    """

    def __init__(
        self,
        source: TickSource,
        writer: TickWriter,
        clock: Clock,
        interval_ms: int,
        stop: Stop,
        notify: Notifier,
        has_no_gpu: Callable[[], bool] = lambda: False,
    ) -> None:
        self._source = source
        self._writer = writer
        self._clock = clock
        self._interval_ms = interval_ms
        self._stop = stop
        self._notify = notify
        self._has_no_gpu = has_no_gpu
        self._journal = TickJournal()
        self._said_no_gpu = False

    def run(self) -> None:
        """Tick until stopped. A tick that fails is counted and logged, and the next one is taken.

        Raises DatabaseDamaged only.
        """
        schedule = Schedule(self._clock.monotonic_s(), self._interval_ms / 1000)
        while not self._stop.requested:
            status = self._guarded_tick()
            if status is None:
                return
            self._notify.alive(status)
            skipped, now_s = schedule.skipped, self._clock.monotonic_s()
            deadline_s = schedule.advance(now_s)
            if schedule.skipped > skipped:
                self._journal.skipped(round(now_s * 1000))
            if self._wait_until(deadline_s, status):
                return

    def _guarded_tick(self) -> Optional[str]:
        """One tick; a line on how it went, None when it was stopped."""
        now_ms = round(self._clock.monotonic_s() * 1000)
        try:
            tick = self._take()
            if tick is None:
                return "no NVIDIA device on the PCI bus, waiting for one"
            self._writer.write_tick(tick)
        except StopRequested:
            return None
        except DatabaseDamaged:
            raise  # every further tick would meet it too
        except Exception as exc:  # noqa: BLE001 - the tick guard: no failed tick may end the daemon
            self._journal.lost(exc, now_ms)
            return "the last tick was lost"
        self._journal.ticked(tick, now_ms)
        return f"last tick {tick.status.value}, {len(tick.cards)} cards"

    def _take(self) -> Optional[Tick]:
        """A tick of this host; None where there is nothing to tick: no card now, none before."""
        known = self._writer.known_devices()
        ts_ms = self._clock.now_ms()
        with self._stop.interruptible():
            tick = self._source.collect(ts_ms=ts_ms, cover_ms=self._interval_ms, known=known)
        answered = tick.status is not TickStatus.UNRESPONSIVE
        nothing_here = answered and not tick.cards and self._has_no_gpu()
        if nothing_here and not self._said_no_gpu:
            logger.info("no NVIDIA device on the PCI bus: waiting for one")
        self._said_no_gpu = nothing_here
        return None if nothing_here else tick

    def _wait_until(self, deadline_s: float, status: str) -> bool:
        """Wait, feeding the watchdog where the interval is longer than its patience. True when stopped."""
        watchdog_s = self._notify.watchdog_s
        while True:
            left_s = deadline_s - self._clock.monotonic_s()
            if left_s <= 0:
                return self._stop.requested
            if self._stop.wait(left_s if watchdog_s is None else min(left_s, watchdog_s / 2)):
                return True
            if watchdog_s is not None:
                self._notify.alive(status)


def run_loop(
    source: TickSource,
    writer: TickWriter,
    clock: Clock,
    interval_ms: int,
    stop: Stop,
    notify: Notifier,
    has_no_gpu: Callable[[], bool] = lambda: False,
) -> None:
    """Tick every `interval_ms` until `stop`. Neither source nor writer is closed."""
    TickLoop(source, writer, clock, interval_ms, stop, notify, has_no_gpu).run()
