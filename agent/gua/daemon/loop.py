"""The tick loop. It alone knows when; what a tick is comes from the source, where it goes is the writer's."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Optional, Protocol

from gua.clock import Clock
from gua.collect import TickSource
from gua.daemon.bus import Bus
from gua.daemon.clocks import ClockWatch
from gua.daemon.journal import TickJournal
from gua.daemon.notify import Notifier
from gua.daemon.pause import PauseRequest
from gua.daemon.schedule import Schedule
from gua.daemon.stop import Stop, StopRequested
from gua.errors import DatabaseDamaged, DatabaseReplaced
from gua.model import KnownDevice, Tick, TickStatus

logger = logging.getLogger(__name__)


# Every further tick would meet these too: another database must be opened.
_NO_USE = (DatabaseDamaged, DatabaseReplaced)
# A request to pause is obeyed within this time, unless a tick is at work.
_LOOK_S = 1.0


class TickWriter(Protocol):
    """Where ticks and pauses go. Of a pause the beginning may be told again, and an end where there was none."""

    def known_devices(self) -> Sequence[KnownDevice]: ...

    def write_tick(self, tick: Tick) -> None: ...

    def begin_pause(self, now_ms: int, until_ms: Optional[int]) -> None: ...

    def end_pause(self, now_ms: int) -> None: ...


class Gate(Protocol):
    """Whether the driver may be touched; see `gua.daemon.gate.PauseGate`."""

    def enter(self) -> Optional[PauseRequest]: ...

    def look(self) -> Optional[PauseRequest]: ...

    def leave(self) -> None: ...


class Reload(Protocol):
    """Settings that may change while the loop runs; see `gua.daemon.reload.Reloader`."""

    @property
    def requested(self) -> bool: ...

    def take(self) -> int:
        """Answer the request: take what is new, as far as it is right. The interval from now on, in milliseconds."""
        ...


class NeverReload:
    """For a loop whose settings stay."""

    requested = False

    def take(self) -> int:
        raise AssertionError("nobody asked for it")


class TickLoop:
    """Ticks at every deadline until told to stop; none while a pause is asked for."""

    def __init__(
        self,
        source: TickSource,
        writer: TickWriter,
        clock: Clock,
        interval_ms: int,
        stop: Stop,
        notify: Notifier,
        gate: Gate,
        bus: Bus,
        reload: Reload,
    ) -> None:
        self._source = source
        self._writer = writer
        self._clock = clock
        self._interval_ms = interval_ms
        self._stop = stop
        self._notify = notify
        self._gate = gate
        self._bus = bus
        self._reload = reload
        self._watch = ClockWatch(clock)
        self._journal = TickJournal()
        self._said_no_gpu = False
        self._pause_known = False  # what an earlier daemon left in the store
        self._pause_stored: Optional[PauseRequest] = None

    def run(self) -> None:
        """Tick until stopped. A tick that fails is counted and logged, and the next one is taken.

        Raises DatabaseDamaged and DatabaseReplaced, and what the gate does.
        """
        schedule = self._new_schedule()
        while not self._stop.requested:
            request = self._gate.enter()
            if request is not None:
                self._sit_out(request)
                schedule = self._new_schedule()
                continue
            self._store_pause(None)
            self._look_at_clock()
            began_s = self._clock.monotonic_s()
            status = self._guarded_tick()
            if status is None:
                return
            self._notify.alive(status)
            schedule = self._rest(schedule, began_s, status)

    def _rest(self, schedule: Schedule, began_s: float, status: str) -> Schedule:
        """Let the time to the next tick pass. The schedule from there on: another after a reload or a suspension."""
        self._next_deadline_s(schedule, began_s)
        while True:
            suspended_s = self._wait_until(schedule.deadline_s, status)
            if suspended_s:
                self._journal.suspended(suspended_s)
                return self._new_schedule()
            if not self._reload.requested or self._stop.requested:
                return schedule
            schedule = self._changed(schedule)

    def _changed(self, schedule: Schedule) -> Schedule:
        """Take new settings; what was due before is due still, or sooner."""
        before_ms, self._interval_ms = self._interval_ms, self._reload.take()
        if self._interval_ms == before_ms:
            return schedule
        return schedule.changed(self._clock.monotonic_s(), self._interval_ms / 1000)

    def _look_at_clock(self) -> None:
        by_ms = self._watch.set_by_ms()
        if by_ms:
            self._journal.clock_set(by_ms, round(self._clock.monotonic_s() * 1000))

    def _new_schedule(self) -> Schedule:
        return Schedule(self._clock.monotonic_s(), self._interval_ms / 1000)

    def _next_deadline_s(self, schedule: Schedule, began_s: float) -> float:
        """When the next tick is due; ticks that fell out meanwhile are told, never made up for."""
        due_s, now_s = schedule.deadline_s, self._clock.monotonic_s()
        skipped = schedule.skipped
        deadline_s = schedule.advance(now_s)
        if schedule.skipped > skipped:
            self._journal.skipped(began_s - due_s, now_s - began_s, schedule.skipped - skipped, round(now_s * 1000))
        return deadline_s

    def _sit_out(self, request: PauseRequest) -> None:
        """Keep off the driver until nobody asks for that any more, or a stop is requested."""
        standing: Optional[PauseRequest] = request
        while standing is not None and not self._stop.requested:
            self._journal.paused(str(standing))
            if self._reload.requested:
                self._interval_ms = self._reload.take()
            if self._source.close():
                self._gate.leave()
            self._store_pause(standing)
            self._notify.alive(str(standing))
            self._stop.wait(_LOOK_S)
            standing = self._gate.look()
        if standing is None:
            self._journal.resumed()
        suspended_s = self._watch.suspended_s()
        if suspended_s:  # told here, or the first wait after the pause would end for it
            self._journal.suspended(suspended_s)

    def _store_pause(self, request: Optional[PauseRequest]) -> None:
        """Keep in the store which pause stands, or that none does; where that fails, the next look tries again."""
        if self._pause_known and self._pause_stored == request:
            return
        now_ms = self._clock.now_ms()
        try:
            if request is None:
                self._writer.end_pause(now_ms)
            else:
                self._writer.begin_pause(now_ms, request.until_ms)
        except _NO_USE:
            raise
        except Exception as exc:  # noqa: BLE001 - as for ticks: that it cannot be stored must not end the daemon
            self._journal.pause_not_stored(exc, round(self._clock.monotonic_s() * 1000))
        else:
            self._pause_known, self._pause_stored = True, request

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
        except _NO_USE:
            raise
        except Exception as exc:  # noqa: BLE001 - the tick guard: no failed tick may end the daemon
            self._journal.lost(exc, now_ms)
            return "the last tick was lost"
        self._journal.ticked(tick, now_ms, self._bus.troubles(tick))
        return f"last tick {tick.status.value}, {len(tick.cards)} cards"

    def _take(self) -> Optional[Tick]:
        """A tick of this host; None where there is nothing to tick: no card now, none before."""
        known = self._writer.known_devices()
        ts_ms = self._clock.now_ms()
        with self._stop.interruptible():
            tick = self._source.collect(ts_ms=ts_ms, cover_ms=self._interval_ms, known=known)
        answered = tick.status is not TickStatus.UNRESPONSIVE
        nothing_here = answered and not tick.cards and self._bus.has_no_gpu()
        if nothing_here and not self._said_no_gpu:
            logger.info("no NVIDIA device on the PCI bus: waiting for one")
        self._said_no_gpu = nothing_here
        return None if nothing_here else tick

    def _wait_until(self, deadline_s: float, status: str) -> float:
        """Wait for the deadline, or a stop, a pause, a reload, feeding the watchdog where that takes long.

        The end of a suspension ends it too: how long that was, in seconds, else 0.0.
        """
        watchdog_s, fed_s = self._notify.watchdog_s, self._clock.monotonic_s()
        while not (self._stop.requested or self._reload.requested) and self._gate.look() is None:
            suspended_s, now_s = self._watch.suspended_s(), self._clock.monotonic_s()
            if suspended_s or now_s >= deadline_s:
                return suspended_s
            if watchdog_s is not None and now_s - fed_s >= watchdog_s / 3:
                self._notify.alive(status)
                fed_s = now_s
            self._stop.wait(min(deadline_s - now_s, _LOOK_S))
        return 0.0


def run_loop(
    source: TickSource,
    writer: TickWriter,
    clock: Clock,
    interval_ms: int,
    stop: Stop,
    notify: Notifier,
    gate: Gate,
    bus: Bus,
    reload: Optional[Reload] = None,
) -> None:
    """Tick every `interval_ms` until `stop`. Source and writer are left open."""
    TickLoop(source, writer, clock, interval_ms, stop, notify, gate, bus, reload or NeverReload()).run()
