"""`gua-fleet report`: asks every host for its own report over one window and shows their sum."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from gua.cli.output import add_format_option
from gua.cli.screen import read_screen
from gua.clock import SystemClock
from gua.coverage import slot_ceil, slot_floor
from gua.errors import GuaError, UsageError
from gua.report.period import parse_period
from gua.report.window import RAGGED_UP_TO_MS
from gua.report.zones import find_zone, local_zone_name
from gua.units import to_iso
from gua_fleet.cli.common import add_fleet_options, ask_fleet, exit_status
from gua_fleet.merge import merge_reports
from gua_fleet.model import Document
from gua_fleet.probes.report import report_probe
from gua_fleet.render_json import render_json
from gua_fleet.render_table import DEFAULT_WIDTH, render_fleet


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of `gua-fleet report`."""
    parser.add_argument(
        "--since", metavar="WHEN", help="begin: a duration back from the end (7d) or a time (default 7d)"
    )
    parser.add_argument("--until", metavar="WHEN", help="end: a duration ago or a time (default now)")
    parser.add_argument(
        "--tz", metavar="ZONE", help="time zone, such as Europe/Berlin or UTC (default: this machine's)"
    )
    add_format_option(parser, "table")
    parser.set_defaults(format=None)  # the settings decide
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to standard output")
    add_fleet_options(parser)


def run(options: argparse.Namespace) -> int:
    """Ask, merge, show. Returns 0 when all answered, 1 when some failed, 3 when nobody answered."""
    clock, tz = SystemClock(), options.tz or local_zone_name()
    now_ms = clock.now_ms()
    zone = find_zone(tz)
    if zone is None:
        raise UsageError(f"--tz {tz}: this machine does not know that zone; write one such as Europe/Berlin or UTC")
    _check_output(options.output)
    since_ms, until_ms = fleet_window(*parse_period(options.since, options.until, now_ms=now_ms, zone=zone), now_ms)
    results = ask_fleet(options, report_probe(since_ms=since_ms, until_ms=until_ms, tz=tz)).results
    document = merge_reports(results, since_ms=since_ms, until_ms=until_ms, tz=tz, generated_at_ms=clock.now_ms())
    _show(document, options.format, options.output)
    return int(exit_status(results, options.allow_missing))


def fleet_window(since_ms: int, until_ms: int, now_ms: int) -> tuple[int, int]:
    """The window to ask every host for, such that all of them answer for the same one.

    A host never reports beyond its own clock, and widens long windows to slot edges as far as they are past there. So
    a long window is cut at the last edge here, which is past on every clock that is not badly behind.
    Raises UsageError for a window that has not begun.
    """
    if since_ms >= now_ms:
        raise UsageError(f"the window has not begun: it begins {to_iso(since_ms)}")
    until_ms = min(until_ms, now_ms)
    if until_ms - since_ms <= RAGGED_UP_TO_MS:
        return since_ms, until_ms
    return slot_floor(since_ms), min(slot_ceil(until_ms), slot_floor(now_ms))


def _check_output(output: Path | None) -> None:
    """Raise UsageError where nothing can be written: better before all hosts are asked than after."""
    if output is None:
        return
    if not output.parent.is_dir():
        raise UsageError(f"-o {output}: there is no directory {output.parent}; make it first")
    if output.is_dir():
        raise UsageError(f"-o {output}: is a directory; name a file in it")
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        raise UsageError(f"-o {output}: cannot be written")


def _show(document: Document, form: str, output: Path | None) -> None:
    if output is None:
        screen = read_screen(sys.stdout, pipe_columns=DEFAULT_WIDTH)
        width = min(screen.width, DEFAULT_WIDTH)
        table = form == "table" and render_fleet(document, width=width, unicode=screen.unicode, colour=screen.colour)
        sys.stdout.write(table or render_json(document))
        return
    try:
        output.write_text(render_fleet(document) if form == "table" else render_json(document), encoding="utf-8")
    except OSError as exc:
        raise GuaError(f"-o {output}: cannot be written: {exc.strerror}") from exc
    sys.stderr.write(f"report: {output}\n")
