"""`gua-fleet holds`: who could give a card back."""

from __future__ import annotations

import argparse
from dataclasses import replace

from gua.clock import SystemClock
from gua.units import to_iso
from gua_fleet.anonymous import mask_of
from gua_fleet.cli.common import add_fleet_options, exit_status, seconds
from gua_fleet.cli.now import HOUR_MS, ask_now
from gua_fleet.cli.view import add_view_options, check_output, show
from gua_fleet.holds import Filter, current_holds, without_name
from gua_fleet.view_holds import holds_view


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: which holds, which hosts, how to ask, which form."""
    which = parser.add_argument_group("which holds")
    which.add_argument("--idle-for", type=seconds, metavar="TIME", help="on cards idle without a break for so long")
    which.add_argument("--min", dest="held_for", type=seconds, metavar="TIME", help="by processes there for so long")
    which.add_argument("--user", metavar="NAME", help="of this user (a shell pattern does, too)")
    add_view_options(parser, people=True)
    add_fleet_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print who holds what now. Exit status 0 also where nobody does, 1 when a host did not answer, 3 when none did."""
    check_output(options.output)
    answers, hosts = ask_now(options, window_ms=HOUR_MS)
    now_ms, chosen = SystemClock().now_ms(), Filter(options.idle_for, options.held_for, options.user)
    holds = current_holds(hosts, options.config.excuses, now_ms)
    taken = [hold for hold in holds if chosen.takes(hold)]
    if options.names is False:
        mask, chosen = mask_of(hosts), replace(chosen, user=None)
        taken, hosts = [without_name(hold, mask) for hold in taken], tuple(map(mask.host, hosts))
    left_out, at = len(holds) - len(taken), to_iso(now_ms)
    show(
        holds_view(taken, chosen, hosts, left_out=left_out, generated_at=at, names=options.names is not False), options
    )
    return int(exit_status(answers.results, options.allow_missing))
