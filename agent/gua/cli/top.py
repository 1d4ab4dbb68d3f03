"""`gua top`: what every card does now, live in a terminal."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from gua.cli.common import add_fake_option, add_store_options, locate_database, open_settings, tell
from gua.cli.report import add_tz_option
from gua.cli.screen import read_screen
from gua.clock import Clock, SystemClock
from gua.errors import DatabaseMissing, DatabaseUnusable, GuaError, NoGpu, UsageError
from gua.report.zones import find_zone, local_zone_name
from gua.units import parse_duration_ms

if TYPE_CHECKING:
    from pathlib import Path

    from gua.config import Settings
    from gua.model import KnownDevice
    from gua.top.sources import ViewSource

_LEAST_MS = 200


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of `gua top`."""
    parser.add_argument(
        "--interval", default="5s", metavar="DURATION", help="time between two looks (default 5s); keys: q s h"
    )
    add_tz_option(parser)
    add_store_options(parser)
    add_fake_option(parser)


def run(options: argparse.Namespace) -> int:
    """Show it until `q`; one plain frame where standard output is no terminal. Returns 0."""
    interval_ms = parse_duration_ms(options.interval)
    if interval_ms < _LEAST_MS:
        raise UsageError(f"--interval {options.interval!r} is too short: {_LEAST_MS}ms is the least")
    settings, clock = open_settings(options), SystemClock()
    source = _fake(settings, clock, interval_ms) if options.fake else _real(options, settings, clock, interval_ms)
    from gua.top.frame import Shown, frame, plain_text

    screen = read_screen(sys.stdout)
    how = Shown(unicode=screen.unicode, zone=find_zone(options.tz or local_zone_name()))
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from gua.top.live import run_live

        return run_live(source, how, interval_ms)
    try:
        sys.stdout.write(plain_text(frame(source.read(), how, screen.width)))
    finally:
        source.close()
    return 0


def _fake(settings: Settings, clock: Clock, interval_ms: int) -> ViewSource:
    from gua.recording import open_source
    from gua.top.sources import SampleSource
    from gua.top.view import STEPS

    source = open_source(settings, clock, fake=True)
    sampled = SampleSource(source, clock, interval_ms=interval_ms, name="demo", notes=("A made-up host.",))
    sampled.fill(STEPS)
    return sampled


def _real(options: argparse.Namespace, settings: Settings, clock: Clock, interval_ms: int) -> ViewSource:
    """The daemon's database where a daemon runs, else samples of our own, unless a pause forbids them."""
    from gua.daemon.lock import is_locked
    from gua.daemon.pause import refuse_when_paused
    from gua.errors import Paused
    from gua.top.sources import StoreSource

    path, scheduler = locate_database(options, settings).path, settings.scheduler
    running = is_locked(path)
    paused: tuple[str, ...] = ()
    try:
        refuse_when_paused(path, clock.now_ms())
    except Paused as exc:
        paused = (str(exc),)
    except GuaError as exc:
        tell(str(exc))  # nobody obeys a request that cannot be read
    if running:
        return StoreSource(path, clock, scheduler, paused, "daemon's database")
    if paused or (running is None and os.access(path, os.R_OK)):
        note = () if running is None else ("No gua daemon runs here.",)
        return StoreSource(path, clock, scheduler, (*paused, *note))
    return _own_samples(path, settings, clock, interval_ms)


def _own_samples(path: Path, settings: Settings, clock: Clock, interval_ms: int) -> ViewSource:
    from gua.host import procfs_root
    from gua.pci import is_gpu_less, read_nvidia_devices, sysfs_root
    from gua.recording import open_source
    from gua.top.sources import SampleSource

    known, why = _known(path)
    devices = read_nvidia_devices(sysfs_root())
    if not known and devices is not None and is_gpu_less(devices, sysfs_root(), procfs_root()):
        raise NoGpu("no NVIDIA device on this host's PCI bus: nothing to show; --fake shows a made-up host")
    notes = ("No gua daemon runs here, so this samples itself and stores nothing.", *why)
    source = open_source(settings, clock, fake=False)
    return SampleSource(source, clock, interval_ms=interval_ms, known=known, notes=notes, scheduler=settings.scheduler)


def _known(path: Path) -> tuple[tuple[KnownDevice, ...], tuple[str, ...]]:
    """The cards that are expected here, and why that cannot be read: the present can be told without the past."""
    from gua.store.database import open_reader

    try:
        with open_reader(path) as reader:
            return tuple(row.known(None) for row in reader.devices() if row.retired_at_ms is None), ()
    except DatabaseMissing:
        return (), ()
    except DatabaseUnusable as exc:
        return (), (f"Cards that are gone are not told: {exc}",)
