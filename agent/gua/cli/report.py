"""`gua report`: reads this host's history, changing nothing, and shows it or hands it to a controller."""

from __future__ import annotations

import argparse
import contextlib
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from gua.cli.common import add_store_options, locate_database, open_settings, tell
from gua.cli.output import add_format_option, add_frame_option, document_text, emit_document, write_atomically
from gua.cli.screen import Screen, read_screen
from gua.clock import Clock, SystemClock
from gua.errors import DatabaseMissing, GuaError, NoGpu, UsageError
from gua.location import Location
from gua.report.document import Report
from gua.report.period import NAMED_PERIODS, named_period, parse_period
from gua.report.rule_option import parse_rule
from gua.report.zones import find_zone, local_zone_name

if TYPE_CHECKING:
    from gua.store.reader import StoreReader

_WIDTHS = range(60, 201)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of `gua report`."""
    add_period_options(parser)
    add_view_options(parser)
    parser.add_argument("--user", type=_name, metavar="USER", help="name this user only")
    parser.add_argument(
        "--rules", metavar="RULES", help="judge the raw ticks again: active=5,held=500,unattributed=500,long=30m"
    )
    parser.add_argument(
        "--sensitivity", action="store_true", help="add the headline under 5, 10, 20 %% and 0, 100, 500 MB"
    )
    add_store_options(parser)
    add_frame_option(parser)


def add_period_options(parser: argparse.ArgumentParser, default: str = "1h") -> None:
    """`--since`, `--until` and the calendar's windows; `period_of` reads them. default: what `--since` is else."""
    parser.add_argument(
        "--since", metavar="WHEN", help=f"begin: a duration back from the end (7d) or a time (default {default})"
    )
    parser.add_argument("--until", metavar="WHEN", help="end: a duration ago or a time (default now)")
    named = parser.add_mutually_exclusive_group()
    for name in NAMED_PERIODS:
        words = f"the window of {name.replace('-', ' ')}, by the calendar of --tz"
        named.add_argument(f"--{name}", dest="period", action="store_const", const=name, help=words)
    parser.set_defaults(period_default=default)


def period_of(options: argparse.Namespace, now_ms: int, zone_name: str) -> tuple[int, int]:
    """(since_ms, until_ms) of what `add_period_options` took. Raises UsageError."""
    zone = find_zone(zone_name)
    if options.period is None:
        return parse_period(options.since or options.period_default, options.until, now_ms=now_ms, zone=zone)
    if options.since is not None or options.until is not None:
        raise UsageError(f"--{options.period} is a window of its own: leave --since and --until out")
    return named_period(options.period, now_ms=now_ms, zone=zone)


def add_view_options(parser: argparse.ArgumentParser) -> None:
    """How a report is shown: format, width, time zone, heat map, file."""
    add_format_option(parser, more=("csv", "md", "html"))
    add_width_option(parser)
    add_tz_option(parser)
    parser.add_argument(
        "--heat", choices=("active", "idle-held", "truly-idle"), help="draw this state only in the hours of the week"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to standard output")


def add_width_option(parser: argparse.ArgumentParser) -> None:
    """`--width`."""
    parser.add_argument(
        "--width", type=_width, metavar="N", help="columns of the text, 60 to 200 (default: the terminal's, else 80)"
    )


def add_tz_option(parser: argparse.ArgumentParser) -> None:
    """`--tz`."""
    parser.add_argument("--tz", metavar="ZONE", help="time zone, such as Europe/Berlin or UTC (default: this host's)")


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("a user has a name")
    return text


def _width(text: str) -> int:
    if not text.isdecimal() or int(text) not in _WIDTHS:
        raise argparse.ArgumentTypeError(f"width {text!r}: write a number of columns from 60 to 200")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Print the report of the chosen database. Returns 0; a missing database is an error (2)."""
    settings = open_settings(options)
    zone_name = _zone_name(options)
    clock = SystemClock()
    since_ms, until_ms = period_of(options, clock.now_ms(), zone_name)
    extras: dict[str, Any] = {"user": options.user, "timeline": options.format == "html"}
    if options.rules is not None:
        extras["rule"] = parse_rule(options.rules, settings.rule)
    if options.sensitivity:
        extras["sensitivity"] = True
    location = locate_database(options, settings)
    with _no_garbage():
        report = read_report(location, since_ms, until_ms, zone_name, settings.scheduler, clock, **extras)
        show_report(report, options)
    return 0


def _zone_name(options: argparse.Namespace) -> str:
    """The zone asked for, else this host's. A controller gives absolute times, so it may name one not known here.

    Raises UsageError where people ask for such a zone: their times would be read as UTC.
    """
    if options.tz and options.frame is None and find_zone(options.tz) is None:
        raise UsageError(
            f"--tz {options.tz!r}: this host knows no such time zone: write one such as Europe/Berlin, or UTC"
        )
    return options.tz or local_zone_name()


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """What a report makes lives until it is shown: looking for garbage in it would take a twentieth of its time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def read_report(
    location: Location,
    since_ms: int,
    until_ms: int,
    zone_name: str,
    scheduler: Optional[str],
    clock: Clock,
    **extras: Any,
) -> Report:
    """The report over [since_ms, until_ms), Unix UTC milliseconds. extras: further arguments of `build_report`.

    Raises DatabaseMissing with the cure, or NoGpu when there is none because this host has no NVIDIA card.
    """
    from gua.report.build import build_report  # the store is only needed now that the options are right
    from gua.store.database import read_stored

    with _missing_told(location):
        return read_stored(
            location.path,
            lambda reader: build_report(
                reader,
                since_ms=since_ms,
                until_ms=until_ms,
                now_ms=clock.now_ms(),
                zone=find_zone(zone_name),
                zone_name=zone_name,
                scheduler=scheduler,
                **extras,
            ),
        )


@contextlib.contextmanager
def reading(location: Location) -> Iterator[StoreReader]:
    """The history at `location`, as `open_reader` opens it.

    Raises DatabaseMissing with the cure, or NoGpu when there is none because this host has no NVIDIA card.
    """
    from gua.store.database import open_reader

    with _missing_told(location), open_reader(location.path) as reader:
        yield reader


@contextlib.contextmanager
def _missing_told(location: Location) -> Iterator[None]:
    """Where there is no database, tell what to do, or that there is no card to report on."""
    try:
        yield
    except DatabaseMissing as exc:
        raise _nothing_there(location) from exc


def _nothing_there(location: Location) -> GuaError:
    from gua.host import procfs_root
    from gua.pci import is_gpu_less, read_nvidia_devices, sysfs_root

    devices = read_nvidia_devices(sysfs_root())
    if devices is not None and is_gpu_less(devices, sysfs_root(), procfs_root()):
        return NoGpu(f"no database at {location}, and no NVIDIA device on this host's PCI bus: nothing to report")
    return DatabaseMissing(f"no database at {location}: run `gua daemon` first")


def show_report(report: Report, options: argparse.Namespace) -> None:
    """Write the report where and how the view options ask; framed answers are always JSON, to stdout."""
    frame = getattr(options, "frame", None)
    if frame is not None or (options.format == "json" and options.output is None):
        emit_document(report, frame)
    elif options.output is None:
        sys.stdout.write(rendered(report, options, read_screen(sys.stdout)))
    else:
        write_atomically(options.output, rendered(report, options, Screen(width=80, unicode=True, colour=False)))
        tell(f"report {options.output}")


def rendered(report: Report, options: argparse.Namespace, screen: Screen) -> str:
    """The report in its format. Each format's module is imported only when it is the one."""
    heat = (options.heat,) if options.heat else ("idle-held", "active")
    if options.format == "json":
        return document_text(report)
    if options.format == "csv":
        from gua.report.render_csv import render_csv

        return render_csv(report)
    if options.format == "md":
        from gua.report.render_md import render_md

        return render_md(report, heat=heat)
    if options.format == "html":
        from gua.report.render_html import render_html

        return render_html(report, heat=heat)
    from gua.report.render_text import render_report

    width = options.width or screen.width
    return render_report(report, width=width, unicode=screen.unicode, colour=screen.colour, heat=heat)
