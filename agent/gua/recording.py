"""Where ticks come from and go to on this host: the edges that the daemon and `sync-once` share."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from gua.clock import Clock
from gua.collect import Collector, TickSource
from gua.config import Settings
from gua.host import hostname, procfs_root, read_boot_id, read_machine_id

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from gua.store.writer import StoreWriter


def open_source(settings: Settings, clock: Clock, *, fake: bool) -> TickSource:
    """This host's ticks, or a made-up host's. Nothing is started before the first `collect`."""
    if fake:
        from gua.demo.cluster import FakeSource

        return FakeSource(rules=settings.rules)
    from gua.identity.users import build_identifier
    from gua.nvml.client import WorkerClient

    return Collector(
        WorkerClient(deadline_s=settings.nvml_deadline_ms / 1000, clock=clock),
        build_identifier(procfs_root(), clock, trust_pid_namespace=settings.trust_pid_namespace),
        settings.rules,
    )


@contextlib.contextmanager
def open_recording(
    path: Path,
    clock: Clock,
    *,
    fake: bool,
    alone: bool,
    give_up: Callable[[], bool] = lambda: False,
    settings: Optional[Settings] = None,
) -> Iterator[StoreWriter]:
    """The writer of this host's history, closed at the end.

    fake: the writer of the made-up host, which a database with real history refuses. alone: no daemon has the
    database, see `open_writer`. give_up: ends the wait for a locked database. settings: how long to keep what; None:
    nothing is removed.
    Raises DatabaseUnusable, UsageError.
    """
    if fake:
        from gua.demo.profile import DEMO_HOSTS
        from gua.demo.recording import open_demo_writer

        with open_demo_writer(path, DEMO_HOSTS["demo"], clock, give_up) as writer:
            yield writer
        return
    from gua.store.database import open_writer
    from gua.store.retention import Retention

    writer = open_writer(
        path,
        clock=clock,
        machine_id=read_machine_id(),
        boot_id=read_boot_id(procfs_root()),
        hostname=hostname(),
        alone=alone,
        give_up=give_up,
        retention=None if settings is None else Retention(settings.raw_retention_ms, settings.user_retention_ms),
    )
    if writer.moved_aside is not None:
        _tell_moved(path, writer.moved_aside)
    try:
        yield writer
    finally:
        writer.close()


def _tell_moved(path: Path, aside: Path) -> None:
    from gua.store.files import waiting_imports

    if aside in waiting_imports(path):
        logger.warning("%s was a database of gpu-usage-audit: kept as %s, to be imported", path, aside)
    else:
        logger.error("%s was damaged or no database: moved to %s, a new one begins", path, aside)
