"""`gua-fleet store`: what is in the fleet's store, whether it is whole, and room given back."""

from __future__ import annotations

import argparse

from gua.clock import SystemClock
from gua.errors import ExitStatus
from gua_fleet.cli.common import add_config_option
from gua_fleet.cli.store import add_store_option, store_place
from gua_fleet.cli.view import add_view_options, check_output, show

_DOES = {
    "info": "how large it is, which hosts are in it, since when and how old",
    "check": "whether it is whole: the file, and sums against what they are sums of",
    "vacuum": "give room that nothing uses back to the disk",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: what to do, with which store."""
    parser.add_argument("action", choices=_DOES, help="; ".join(f"{name}: {words}" for name, words in _DOES.items()))
    add_config_option(parser)
    add_store_option(parser)
    add_view_options(parser)


def run(options: argparse.Namespace) -> int:
    """Exit status 0; 1 where `check` found something."""
    from gua_fleet.store import care, check  # peewee is loaded where the store is opened
    from gua_fleet.store.database import open_store, open_to_read
    from gua_fleet.view_store import check_view, info_view, vacuum_view

    check_output(options.output)
    place, now_ms = store_place(options), SystemClock().now_ms()
    status = ExitStatus.OK
    if options.action == "vacuum":
        with open_store(place, now_ms=now_ms, create=False) as session:
            view = vacuum_view(*care.vacuum(session), place=str(place))
    else:
        with open_to_read(place, now_ms=now_ms) as session, session.reading():
            if options.action == "info":
                view = info_view(care.store_info(session), place=str(place), now_ms=now_ms)
            else:
                wrong = list(check.check_store(session))
                view, status = check_view(wrong, place=str(place)), ExitStatus.FAILED if wrong else ExitStatus.OK
    show(view, options)
    return int(status)
