"""`gua explain`: the evidence behind a figure, fit to be shown to the person concerned."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gua.cli.common import add_store_options, locate_database, open_settings
from gua.cli.output import add_format_option, add_frame_option, emit_document
from gua.cli.report import add_period_options, add_tz_option, add_width_option, period_of, reading
from gua.cli.screen import read_screen
from gua.clock import SystemClock
from gua.errors import UsageError
from gua.location import Location
from gua.report.period import parse_moment
from gua.report.zones import find_zone, local_zone_name

if TYPE_CHECKING:
    from gua.ledger.explained import Explained


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of `gua explain`."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--card", metavar="CARD", help="what this card did at --at: index, UUID, or the beginning of one")
    what.add_argument("--user", metavar="USER", help="how this user's figure of a window comes about")
    parser.add_argument(
        "--at", metavar="WHEN", help="with --card: a time, or how long ago (default: the newest sample)"
    )
    add_period_options(parser, default="7d")
    add_format_option(parser, more=("md",))
    add_width_option(parser)
    add_tz_option(parser)
    add_store_options(parser)
    add_frame_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the evidence. Returns 0; a missing database, card or user is an error (2)."""
    _refuse_mixture(options)
    settings, now_ms = open_settings(options), SystemClock().now_ms()
    zone_name = options.tz or local_zone_name()
    location = locate_database(options, settings)
    if options.card is not None:
        document = _card(options, location, now_ms, zone_name)
    else:
        document = _user(options, location, now_ms, zone_name)
    if options.format == "json" or options.frame is not None:
        emit_document(document, options.frame)
        return 0
    from gua.ledger.page import render_md, render_text
    from gua.ledger.render_explain import explain_page

    page, screen = explain_page(document), read_screen(sys.stdout)
    if options.format == "md":
        sys.stdout.write(render_md(page))
    else:
        width = options.width or screen.width
        sys.stdout.write(render_text(page, width=width, unicode=screen.unicode, colour=screen.colour))
    return 0


def _refuse_mixture(options: argparse.Namespace) -> None:
    """--at belongs to a card, a window to a user."""
    if options.user is not None and options.at is not None:
        raise UsageError("--at goes with --card; with --user write --since and --until")
    if options.card is not None and any((options.since, options.until, options.period)):
        raise UsageError("a window goes with --user; with --card write --at")


def _card(options: argparse.Namespace, location: Location, now_ms: int, zone_name: str) -> Explained:
    from gua.ledger.explain_card import explain_card

    with reading(location) as reader:
        if options.at is None:
            newest_ms = reader.newest_tick_ms()
            at_ms = now_ms if newest_ms is None else min(newest_ms, now_ms)
        else:
            at_ms = parse_moment(options.at, now_ms=now_ms, zone=find_zone(zone_name), option="--at")
        return explain_card(reader, options.card, at_ms=at_ms, now_ms=now_ms, zone_name=zone_name)


def _user(options: argparse.Namespace, location: Location, now_ms: int, zone_name: str) -> Explained:
    from gua.ledger.explain_user import explain_user

    since_ms, until_ms = period_of(options, now_ms, zone_name)
    asked = {"since_ms": since_ms, "until_ms": until_ms, "now_ms": now_ms}
    return explain_user(lambda: reading(location), options.user, **asked, zone_name=zone_name)
