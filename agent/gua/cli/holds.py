"""`gua holds`: the ledger of who held which card, from when to when, and what came of it."""

from __future__ import annotations

import argparse
import sys

from gua.cli.common import add_store_options, locate_database, open_settings
from gua.cli.output import add_format_option, add_frame_option, emit_document
from gua.cli.report import add_period_options, add_tz_option, add_width_option, period_of, reading
from gua.cli.screen import read_screen
from gua.clock import SystemClock
from gua.report.zones import local_zone_name
from gua.units import parse_duration_ms


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of `gua holds`."""
    add_period_options(parser, default="7d")
    parser.add_argument("--min", metavar="DURATION", help="only holds of at least this much card time, such as 1h")
    parser.add_argument("--user", metavar="USER", help="only holds of this user")
    parser.add_argument("--card", metavar="CARD", help="only holds of this card: index, UUID, or the beginning of one")
    parser.add_argument("--now", action="store_true", help="only holds that are not over")
    parser.add_argument(
        "--all", action="store_true", help="also processes that only draw (Xorg), which hold no card by the rule"
    )
    parser.add_argument(
        "--rules", metavar="RULES", help="judge the raw ticks again: active=5,held=500,unattributed=500,long=30m"
    )
    add_format_option(parser, more=("csv", "md"))
    add_width_option(parser)
    add_tz_option(parser)
    add_store_options(parser)
    add_frame_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the ledger. Returns 0; a missing database is an error (2)."""
    from gua.report.rule_option import parse_rule

    settings, now_ms = open_settings(options), SystemClock().now_ms()
    zone_name = options.tz or local_zone_name()
    since_ms, until_ms = period_of(options, now_ms, zone_name)
    min_ms = 0 if options.min is None else parse_duration_ms(options.min)
    rule = None if options.rules is None else parse_rule(options.rules, settings.rule)
    location = locate_database(options, settings)
    from gua.ledger.holds import Wanted, build_holds

    wanted = Wanted(options.user, options.card, min_ms, options.now, options.all, rule)
    asked = {"since_ms": since_ms, "until_ms": until_ms, "now_ms": now_ms}
    document = build_holds(lambda: reading(location), wanted, **asked, zone_name=zone_name)
    if options.format == "json" or options.frame is not None:
        emit_document(document, options.frame)
        return 0
    from gua.ledger.page import render_md, render_text
    from gua.ledger.render_holds import holds_page, render_csv

    screen = read_screen(sys.stdout)
    if options.format == "csv":
        text = render_csv(document)
    elif options.format == "md":
        text = render_md(holds_page(document))
    else:
        width = options.width or screen.width
        text = render_text(holds_page(document), width=width, unicode=screen.unicode, colour=screen.colour)
    sys.stdout.write(text)
    return 0
