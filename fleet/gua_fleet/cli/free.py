"""`gua-fleet free`: where somebody can work now."""

from __future__ import annotations

import argparse

from gua.clock import SystemClock
from gua.errors import UsageError
from gua.units import to_iso
from gua_fleet.anonymous import mask_of
from gua_fleet.cli.common import add_fleet_options, exit_status, seconds
from gua_fleet.cli.now import HOUR_MS, ask_now
from gua_fleet.cli.view import add_view_options, check_output, show
from gua_fleet.free import Wanted, find_free, parse_memory_mb
from gua_fleet.view_free import free_view


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: what a card must have, which hosts, how to ask, which form."""
    wanted = parser.add_argument_group("which cards")
    wanted.add_argument(
        "--model", metavar="NAME", help="cards whose model holds these letters, such as H100, or matches a pattern"
    )
    wanted.add_argument(
        "--memory",
        type=_memory_mb,
        metavar="SIZE",
        help="cards with this much memory free, such as 40G; 2 %% less will do, as cards are smaller than their names",
    )
    wanted.add_argument("--for", dest="free_s", type=seconds, metavar="TIME", help="free without a break for so long")
    add_view_options(parser, people=True, page=True)
    add_fleet_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print the free cards. Exit status 0 also where none is free, 1 when a host did not answer, 3 when none did."""
    check_output(options.output)
    wanted = Wanted(options.model, options.memory, options.free_s)
    answers, hosts = ask_now(options, window_ms=HOUR_MS)
    if options.names is False:
        hosts = tuple(map(mask_of(hosts).host, hosts))
    view = free_view(find_free(hosts, wanted), wanted, hosts, generated_at=to_iso(SystemClock().now_ms()))
    show(view, options)
    return int(exit_status(answers.results, options.allow_missing))


def _memory_mb(text: str) -> int:
    try:
        return parse_memory_mb(text)
    except UsageError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
