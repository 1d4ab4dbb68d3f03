"""`gua report`: reads this host's history, changing nothing, and shows it or hands it to a controller."""

from __future__ import annotations

import argparse
import sys
from typing import Optional

from gua.cli.common import add_store_options, locate_database, open_settings
from gua.cli.output import add_format_option, add_frame_option, emit_document
from gua.cli.screen import read_screen
from gua.clock import Clock, SystemClock
from gua.errors import DatabaseMissing, NoGpu
from gua.host import procfs_root
from gua.location import Location
from gua.pci import is_gpu_less, read_nvidia_devices, sysfs_root
from gua.report.document import Report
from gua.report.period import parse_period
from gua.report.zones import find_zone, local_zone_name


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of `gua report`."""
    parser.add_argument(
        "--since", default="1h", metavar="WHEN", help="begin: a duration back from the end (7d) or a time (default 1h)"
    )
    parser.add_argument("--until", metavar="WHEN", help="end: a duration ago or a time (default now)")
    add_view_options(parser)
    add_store_options(parser)
    add_frame_option(parser)


def add_view_options(parser: argparse.ArgumentParser) -> None:
    """How a report is shown: format, width, time zone."""
    add_format_option(parser)
    parser.add_argument("--width", type=int, metavar="N", help="columns of the text (default: the terminal's, else 80)")
    parser.add_argument("--tz", metavar="ZONE", help="time zone, such as Europe/Berlin or UTC (default: this host's)")


def run(options: argparse.Namespace) -> int:
    """Print the report of the chosen database. Returns 0; a missing database is an error (2)."""
    settings = open_settings(options)
    zone_name = options.tz or local_zone_name()
    clock = SystemClock()
    since_ms, until_ms = parse_period(options.since, options.until, now_ms=clock.now_ms(), zone=find_zone(zone_name))
    location = locate_database(options, settings)
    report = read_report(location, since_ms, until_ms, zone_name, settings.scheduler, clock)
    show_report(report, options)
    return 0


def read_report(
    location: Location, since_ms: int, until_ms: int, zone_name: str, scheduler: Optional[str], clock: Clock
) -> Report:
    """The report over [since_ms, until_ms), Unix UTC milliseconds.

    Raises DatabaseMissing with the cure, or NoGpu when there is none because this host has no NVIDIA card.
    """
    from gua.report.build import build_report  # the store is only needed now that the options are right
    from gua.store.database import open_reader

    try:
        with open_reader(location.path) as reader:
            return build_report(
                reader,
                since_ms=since_ms,
                until_ms=until_ms,
                now_ms=clock.now_ms(),
                zone=find_zone(zone_name),
                zone_name=zone_name,
                scheduler=scheduler,
            )
    except DatabaseMissing as exc:
        devices = read_nvidia_devices(sysfs_root())
        if devices is not None and is_gpu_less(devices, procfs_root()):
            raise NoGpu(
                f"no database at {location}, and no NVIDIA device on this host's PCI bus: nothing to report"
            ) from exc
        raise DatabaseMissing(f"no database at {location}: run `gua daemon --foreground` first") from exc


def show_report(report: Report, options: argparse.Namespace) -> None:
    """Write the report to stdout the way the view options ask; framed answers are always JSON."""
    frame = getattr(options, "frame", None)
    if options.format == "json" or frame is not None:
        emit_document(report, frame)
        return
    from gua.report.render_text import render_report  # tables are for people only

    screen = read_screen(sys.stdout)
    width = options.width or screen.width
    sys.stdout.write(render_report(report, width=width, unicode=screen.unicode, colour=screen.colour))
