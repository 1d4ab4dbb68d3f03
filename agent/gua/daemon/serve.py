"""The daemon's life: lock, open, tick, let go."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from typing import Optional

from gua.clock import Clock
from gua.config import Settings
from gua.daemon.bus import Bus, MadeUpBus, PciBus
from gua.daemon.gate import PauseGate
from gua.daemon.imports import imports_beside
from gua.daemon.library import WithLibrary
from gua.daemon.live import LiveSource, Outlets, Reloader, longest_tick_s
from gua.daemon.lock import DatabaseLock
from gua.daemon.loop import run_loop
from gua.daemon.notify import Notifier
from gua.daemon.orders import Orders
from gua.daemon.pid_file import refuse_predecessor, remove_pid_file, write_pid_file
from gua.daemon.record import DaemonRecord, own_record
from gua.daemon.recorder import Recorder
from gua.daemon.stop import SignalStop
from gua.daemon.waiting import AGAIN_S, Waiting
from gua.errors import DatabaseDamaged, DatabaseReplaced, DatabaseUnusable
from gua.host import procfs_root
from gua.pci import sysfs_root
from gua.recording import open_recording
from gua.store.files import move_aside

logger = logging.getLogger(__name__)

# What the unit gives it to start: opening may mean to look at all of a long history, to copy it and to rewrite it.
_OPENING_S = 900.0


def serve(orders: Orders, settings: Settings, clock: Clock, ready: Callable[[], object] = lambda: None) -> None:
    """Sample into the database until SIGTERM or SIGINT. ready: called when the first tick is about to be taken.

    Raises GuaError: another daemon has this database, or it cannot be written. After the first tick only the former, of
    one that took it when the lock was removed.
    """
    stop, notify = SignalStop(), Notifier.from_environ()
    with contextlib.ExitStack() as stack:
        lock = DatabaseLock(orders.database)
        lock.acquire(clock)
        stack.callback(lock.release)
        refuse_predecessor(orders.pid_file)
        record = own_record(orders.database)
        write_pid_file(orders.pid_file, record)
        stack.callback(remove_pid_file, orders.pid_file, record)
        outlets = Outlets(orders, clock)
        stack.callback(outlets.close)
        gate = PauseGate(orders.database, clock, lambda: lock.keep(clock))
        stack.callback(gate.leave)
        source = LiveSource(settings, clock, fake=orders.fake)
        stack.callback(source.close)
        stack.callback(outlets.begin_to_end)  # what ends last of all is told first
        life = _Life(orders, settings, clock, stop, notify, outlets, gate, source, record, ready)
        while not life.serve_one():
            lock.keep(clock)
        logger.info("stopping")


class _Life:
    """What stays the same for a daemon's whole life, also when its database is lost and another one begins."""

    def __init__(
        self,
        orders: Orders,
        settings: Settings,
        clock: Clock,
        stop: SignalStop,
        notify: Notifier,
        outlets: Outlets,
        gate: PauseGate,
        source: LiveSource,
        record: DaemonRecord,
        ready: Callable[[], object],
    ) -> None:
        self._orders, self._settings, self._clock, self._ready = orders, settings, clock, ready
        self._stop, self._notify, self._outlets, self._record = stop, notify, outlets, record
        self._gate, self._source = gate, source
        self._waiting = Waiting(orders.database, clock, stop, notify)

    def serve_one(self) -> bool:
        """Sample until told to stop: True. False: the database is lost, or cannot be opened yet; open it again.

        Raises GuaError: another daemon has it, or it cannot be opened and waiting would not help.
        """
        try:
            lost = self._sample()
        except DatabaseUnusable as exc:
            if self._source.close():  # who wants to pause need not wait for us
                self._gate.leave()
            self._waiting.wait(exc)
            return self._stop.requested
        if lost is None:
            return True
        if isinstance(lost, DatabaseDamaged):
            logger.error("%s", lost)
            logger.error("moved to %s, a new one begins", move_aside(self._orders.database, self._clock.now_ms()))
        else:
            logger.error("%s: going on with what is there now", lost)
        # The next tick is due in an interval; where every database is lost at once, this is what slows it down
        return self._stop.wait(min(self._settings.interval_ms / 1000, AGAIN_S))

    def _sample(self) -> Optional[DatabaseUnusable]:
        """Sample until told to stop (None), or until the database is damaged or replaced. Raises GuaError, as above."""
        orders, settings, clock = self._orders, self._settings, self._clock
        with contextlib.ExitStack() as stack:
            self._notify.expect(_OPENING_S)
            recording = open_recording(
                orders.database,
                clock,
                fake=orders.fake,
                alone=True,
                give_up=lambda: self._stop.requested,
                settings=settings,
            )
            recorder = Recorder(stack.enter_context(recording), "demo" if orders.fake else "daemon", settings)
            bus: Bus = MadeUpBus()
            if not orders.fake:
                bus = WithLibrary(PciBus(sysfs_root(), procfs_root(), clock), procfs_root(), clock)
            recorder.begin_run()
            recorder.tell(self._outlets.open(settings))
            self._waiting.over(settings.interval_ms)
            if not os.path.lexists(orders.pid_file):  # it went with a folder, or there was no room for it
                write_pid_file(orders.pid_file, self._record)
            logger.info("sampling every %g s into %s", settings.interval_ms / 1000, orders.database)
            stack.enter_context(imports_beside(orders.database))
            self._notify.expect(longest_tick_s(settings))
            self._notify.ready()
            self._ready()
            reload = Reloader(orders, settings, self._stop, self._notify, clock, self._source, recorder, self._outlets)
            stop, notify, gate, source = self._stop, self._notify, self._gate, self._source
            try:
                run_loop(source, recorder, clock, settings.interval_ms, stop, notify, gate, bus, reload)
            except (DatabaseDamaged, DatabaseReplaced) as exc:
                return exc
            finally:
                self._settings = reload.settings
            self._notify.stopping()
            return None
