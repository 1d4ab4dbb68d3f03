"""`gua-fleet forget-user USER`: a person's name goes from the store and does not come back; the time stays."""

from __future__ import annotations

import argparse
import sys

from gua.clock import SystemClock
from gua_fleet.cli.common import add_config_option
from gua_fleet.cli.store import add_store_option, store_place, tell_copies
from gua_fleet.cli.view import add_view_options, check_output, show


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: who, in which store."""
    parser.add_argument(
        "user", metavar="USER", help="as reports call them; NAME@HOST where the name means something on that host only"
    )
    add_config_option(parser)
    add_store_option(parser)
    add_view_options(parser)


def run(options: argparse.Namespace) -> int:
    """Exit status 0, also where the store does not name them: then the next pull will not either."""
    from gua_fleet.store.database import open_store  # peewee is loaded where the store is opened
    from gua_fleet.store.forgotten import forget_user
    from gua_fleet.view_store import forget_user_view

    check_output(options.output)
    place, now_ms = store_place(options), SystemClock().now_ms()
    with open_store(place, now_ms=now_ms, create=False) as session:
        forgot = forget_user(session, options.user, options.config.users, now_ms)
    show(forget_user_view(options.user, forgot, place=str(place)), options)
    sys.stderr.write("the hosts themselves still have it: see `user_retention` of their settings\n")
    tell_copies(place)
    return 0
