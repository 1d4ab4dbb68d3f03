"""`gua-fleet pull`: what is new in every host's history, copied into the fleet's store."""

from __future__ import annotations

import argparse
import sys
import time

from gua.clock import SystemClock
from gua_fleet.ask import exit_status
from gua_fleet.cli.common import add_fleet_options, read_inventory, seconds, sweep_settings
from gua_fleet.cli.store import add_store_option, store_place
from gua_fleet.cli.view import add_view_options, check_output, show
from gua_fleet.config import FleetConfig
from gua_fleet.model import Outcome
from gua_fleet.progress import watched
from gua_fleet.pull import PullSettings, pull_hosts
from gua_fleet.show import one_line
from gua_fleet.store.asked import note_outcomes
from gua_fleet.store.database import open_store
from gua_fleet.store.retention import remove_raw_of
from gua_fleet.view_pull import pull_view

_MS = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: which hosts, how to ask, what to take, which form."""
    what = parser.add_argument_group("what is copied, and where to")
    add_store_option(what)
    what.add_argument(
        "--rollups-only", action="store_true", help="sums and holds without single ticks: a fifteenth of the size"
    )
    what.add_argument(
        "--raw-retention",
        type=seconds,
        metavar="TIME",
        help="how long single ticks are kept in the store (default 30d); sums are kept for ever",
    )
    what.add_argument(
        "--longest",
        type=seconds,
        metavar="TIME",
        default=600.0,
        help="most time for one host (default 10m); --timeout is the longest silence. The next pull goes on from there",
    )
    add_view_options(parser)
    add_fleet_options(parser)


def run(options: argparse.Namespace) -> int:
    """Pull, say what came. Exit status 1 when a host failed, 2 when the store cannot be used, 3 when none answered."""
    check_output(options.output)
    place, clock, started_s = store_place(options), SystemClock(), time.monotonic()
    config: FleetConfig = options.config
    raw_s = config.raw_retention_s if options.raw_retention is None else options.raw_retention
    raw_ms = round(raw_s * _MS)
    settings = PullSettings(options.rollups_only, raw_ms, options.longest)
    with open_store(place, now_ms=clock.now_ms()) as session:
        inventory = read_inventory(options)
        with watched(sys.stderr, each=options.verbose) as progress:
            pulled = pull_hosts(
                inventory.hosts, session, place, settings, sweep_settings(options), progress=progress, notice=_notice
            )
        if pulled.store_error is None:
            note_outcomes(session, pulled.results, clock.now_ms())
            silent = [result.host.name for result in pulled.results if result.outcome is not Outcome.OK]
            remove_raw_of(session, silent, clock.now_ms(), raw_ms)
    elapsed_s = time.monotonic() - started_s
    show(pull_view(pulled, store=str(place), elapsed_s=elapsed_s, rollups_only=options.rollups_only), options)
    return int(exit_status(pulled.results, options.allow_missing))


def _notice(line: str) -> None:
    sys.stderr.write(f"ssh: {one_line(line, width=400)}\n")
