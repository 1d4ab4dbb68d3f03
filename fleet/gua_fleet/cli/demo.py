"""`gua-fleet demo`: a small made-up fleet, reported by the very code that reports a real one. Needs no GPU."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path

from gua.clock import SystemClock
from gua.demo.recording import zone_offset_ms
from gua.report.zones import local_zone_name
from gua_fleet.cli import report
from gua_fleet.cli.settle import settle_options
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
    reporting = parser.parse_args(["--hosts", str(inventory)])
    settle_options(reporting)
    report.run(reporting)
    sys.stdout.write(closing_text(inventory, _this_command()))
    return 0


def closing_text(inventory: Path, command: str) -> str:
    """What is said under the report: that none of it is real, and what shows it again. Pure."""
    again = f"{command} report --hosts {shlex.quote(str(inventory))}"
    return f"\nThis fleet is made up; gpu04 cannot be reached on purpose. Once more:\n  {again}\n"


def _this_command() -> str:
    return typed_command(
        sys.argv[0], found=shutil.which("gua-fleet"), python=sys.executable, directory=Path(os.path.abspath(""))
    )


def typed_command(argv0: str, *, found: str | None, python: str, directory: Path) -> str:
    """This very `gua-fleet` as it can be typed into a shell in `directory`. Pure.

    A venv that is not activated is not on PATH, and another `gua-fleet` may be.
    argv0: how this program was started. found: the `gua-fleet` on PATH. python: the interpreter that runs it.
    """
    started = directory / argv0
    if started.name != "gua-fleet":
        return f"{shlex.quote(python)} -m gua_fleet"
    if found is not None and directory / found == started:
        return "gua-fleet"
    within = started.is_relative_to(directory)
    return shlex.quote(str(started.relative_to(directory) if within else started))
