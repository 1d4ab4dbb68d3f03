"""`gua-fleet demo`: a small made-up fleet, reported by the very code that reports a real one. Needs no GPU."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from gua.clock import SystemClock
from gua.demo.recording import zone_offset_ms
from gua.report.zones import local_zone_name
from gua_fleet.cli import report
from gua_fleet.demo.fleet import make_fleet


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of `gua-fleet demo`."""
    parser.add_argument(
        "--dir", type=Path, default=Path("gua-demo"), metavar="DIR", help="where to keep it (default ./gua-demo)"
    )


def run(options: argparse.Namespace) -> int:
    """Make the fleet, report on it, say how to do so again. Returns 0 though one of its hosts never answers."""
    now_ms = SystemClock().now_ms()
    sys.stderr.write(f"making a made-up fleet in {options.dir} (three hosts, 24 cards, one week)\n")
    inventory = make_fleet(options.dir, now_ms=now_ms, utc_offset_ms=zone_offset_ms(local_zone_name(), now_ms))
    parser = argparse.ArgumentParser()
    report.configure(parser)
    report.run(parser.parse_args(["--hosts", str(inventory)]))
    again = f"gua-fleet report --hosts {shlex.quote(str(inventory))}"
    sys.stdout.write(f"\nThis fleet is made up; gpu04 cannot be reached on purpose. Once more:\n  {again}\n")
    return 0
