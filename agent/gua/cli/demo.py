"""`gua demo`: a made-up day of one host, recorded and reported as a real one would be. Needs no GPU."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from gua.cli.report import add_view_options, read_report, show_report
from gua.clock import Clock, SystemClock
from gua.demo.history import top_up
from gua.demo.profile import DEMO_HOSTS
from gua.demo.recording import open_demo_writer, zone_offset_ms
from gua.location import Location
from gua.report.zones import local_zone_name
from gua.units import MS_PER_HOUR

_LENGTH_MS = 24 * MS_PER_HOUR


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of `gua demo`."""
    parser.add_argument("--db", type=Path, metavar="FILE", help="keep the made-up history here (default: thrown away)")
    add_view_options(parser)


def run(options: argparse.Namespace) -> int:
    """Record the day and print its report. Returns 0."""
    if options.db is not None:
        _record_and_show(options.db, options)
        sys.stderr.write(f"gua: made-up history, kept in {options.db}: gua report --since 1d --db {options.db}\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="gua-demo-") as directory:
        _record_and_show(Path(directory) / "gua.db", options)
    sys.stderr.write("gua: made-up history of a host that does not exist; nothing was kept\n")
    return 0


def _record_and_show(path: Path, options: argparse.Namespace) -> None:
    clock: Clock = SystemClock()
    zone_name = options.tz or local_zone_name()
    now_ms = clock.now_ms()
    profile = replace(DEMO_HOSTS["demo"], utc_offset_ms=zone_offset_ms(zone_name, now_ms))
    with open_demo_writer(path, profile, clock) as writer:
        top_up(writer, profile, since_ms=now_ms - _LENGTH_MS, until_ms=now_ms)
    location = Location(path, "named by --db")
    wants_timeline = options.format == "html"
    window = (now_ms - _LENGTH_MS, now_ms)
    show_report(read_report(location, *window, zone_name, None, clock, timeline=wants_timeline), options)
