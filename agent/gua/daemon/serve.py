"""The daemon's life: lock, open, tick, let go."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

from gua import __version__
from gua.clock import Clock
from gua.config import Settings
from gua.daemon.lock import DatabaseLock
from gua.daemon.loop import run_loop
from gua.daemon.notify import Notifier
from gua.daemon.stop import SignalStop
from gua.host import procfs_root
from gua.pci import is_gpu_less, read_nvidia_devices, sysfs_root
from gua.recording import open_recording, open_source

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
        writer = stack.enter_context(open_recording(database, clock, fake=fake))
        if writer.moved_aside is not None:
            logger.error("%s was no database: moved to %s, a new one begins", database, writer.moved_aside)
        source = open_source(settings, clock, fake=fake)
        stack.callback(source.close)
        writer.begin_run("demo" if fake else "daemon", settings.interval_ms, settings.rule, __version__)
        logger.info("sampling every %g s into %s", settings.interval_ms / 1000, database)
        notify.ready()
        run_loop(source, writer, clock, settings.interval_ms, stop, notify, _has_no_gpu)
        notify.stopping()
        logger.info("stopping")


def _has_no_gpu() -> bool:
    return is_gpu_less(read_nvidia_devices(sysfs_root()), procfs_root())
