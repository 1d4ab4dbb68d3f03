"""The daemon's life: lock, open, tick, let go."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

from gua import __version__
from gua.clock import Clock
from gua.config import Settings
from gua.daemon.bus import Bus, MadeUpBus, PciBus
from gua.daemon.gate import PauseGate
from gua.daemon.imports import imports_beside
from gua.daemon.lock import DatabaseLock
from gua.daemon.loop import run_loop
from gua.daemon.notify import Notifier
from gua.daemon.stop import SignalStop
from gua.errors import DatabaseDamaged, DatabaseUnusable
from gua.host import procfs_root
from gua.pci import sysfs_root
from gua.recording import open_recording, open_source
from gua.store.files import move_aside

logger = logging.getLogger(__name__)


def serve(settings: Settings, database: Path, clock: Clock, *, fake: bool) -> None:
    """Sample into `database` until SIGTERM or SIGINT.

    Raises GuaError before the first tick: another daemon has this database, or it cannot be written.
    """
    stop, notify = SignalStop(), Notifier.from_environ()
    with contextlib.ExitStack() as stack:
        lock = DatabaseLock(database)
        lock.acquire(clock)
        stack.callback(lock.release)
        try:
            while not _serve_one(settings, database, clock, stop, notify, fake=fake):
                logger.error("moved to %s, a new one begins", move_aside(database, clock.now_ms()))
        except DatabaseUnusable:
            if not stop.requested:
                raise
        logger.info("stopping")


def _serve_one(
    settings: Settings, database: Path, clock: Clock, stop: SignalStop, notify: Notifier, *, fake: bool
) -> bool:
    """Sample until told to stop: True. False: the database broke meanwhile."""
    with contextlib.ExitStack() as stack:
        recording = open_recording(
            database, clock, fake=fake, alone=True, give_up=lambda: stop.requested, settings=settings
        )
        writer = stack.enter_context(recording)
        gate = PauseGate(database, clock)
        bus: Bus = MadeUpBus() if fake else PciBus(sysfs_root(), procfs_root(), clock)
        stack.callback(gate.leave)
        source = open_source(settings, clock, fake=fake)
        stack.callback(source.close)
        writer.begin_run("demo" if fake else "daemon", settings.interval_ms, settings.rule, __version__)
        logger.info("sampling every %g s into %s", settings.interval_ms / 1000, database)
        stack.enter_context(imports_beside(database))
        notify.ready()
        try:
            run_loop(source, writer, clock, settings.interval_ms, stop, notify, gate, bus)
        except DatabaseDamaged as exc:
            logger.error("%s", exc)
            return False
        notify.stopping()
        return True
