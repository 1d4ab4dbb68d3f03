"""`gua-fleet pull`: what is new in every host's history, copied into the fleet's store."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from gua.clock import SystemClock
from gua_fleet.ask import exit_status
from gua_fleet.cli.common import add_fleet_options, read_inventory, seconds, sweep_settings
from gua_fleet.cli.store import add_store_option, store_place
from gua_fleet.cli.view import add_view_options, check_output, show
from gua_fleet.config import FleetConfig
from gua_fleet.errors import StoreUnusable
from gua_fleet.model import HostResult, Outcome
from gua_fleet.progress import watched
from gua_fleet.pull import PullSettings, pull_hosts
from gua_fleet.show import one_line
from gua_fleet.store.asked import note_outcomes
from gua_fleet.store.database import open_store, store_errors
from gua_fleet.store.place import Place
from gua_fleet.store.retention import remove_raw_of
from gua_fleet.store.session import Session
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
        failure = None if pulled.store_error else _look_after(session, place, pulled.results, clock.now_ms(), raw_ms)
    elapsed_s = time.monotonic() - started_s
    show(pull_view(pulled, store=str(place), elapsed_s=elapsed_s, rollups_only=options.rollups_only), options)
    if failure is not None:
        raise failure
    return int(exit_status(pulled.results, options.allow_missing))


def _look_after(
    session: Session, place: Place, results: Sequence[HostResult], now_ms: int, raw_ms: int
) -> StoreUnusable | None:
    """Note who answered, and let go what is too old of those who did not. Gives what went wrong with the store, which
    must not cost the word on what came.
    """
    silent = [result.host.name for result in results if result.outcome is not Outcome.OK]
    try:
        with store_errors(place):
            note_outcomes(session, results, now_ms)
            remove_raw_of(session, silent, now_ms, raw_ms)
    except StoreUnusable as exc:
        return exc
    return None


def _notice(line: str) -> None:
    sys.stderr.write(f"ssh: {one_line(line, width=400)}\n")
