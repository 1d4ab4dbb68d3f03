"""`gua-fleet forget HOST`: everything that the store has of a host goes."""

from __future__ import annotations

import argparse
import sys

from gua.clock import SystemClock
from gua.errors import UsageError
from gua_fleet.cli.common import add_config_option
from gua_fleet.cli.store import add_store_option, store_place, tell_copies
from gua_fleet.cli.view import add_view_options, check_output, show
from gua_fleet.host_names import complete_hosts


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: which host, of which store."""
    host = parser.add_argument("host", metavar="HOST", help="the host's name in the inventory")
    host.completer = complete_hosts  # type: ignore[attr-defined]  # argcomplete looks for it
    add_config_option(parser)
    add_store_option(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would go, and change nothing")
    add_view_options(parser)


def run(options: argparse.Namespace) -> int:
    """Exit status 0; 2 where the store has nothing of that host."""
    from gua_fleet.store.care import forget_host, known_host  # peewee is loaded where the store is opened
    from gua_fleet.store.database import open_store
    from gua_fleet.view_store import forget_view

    check_output(options.output)
    place = store_place(options)
    with open_store(place, now_ms=SystemClock().now_ms(), create=False) as session:
        name = options.host
        if not known_host(session, name):
            raise UsageError(f"{name}: the store has nothing of it; `gua-fleet store info` lists its hosts")
        gone = forget_host(session, name, dry_run=options.dry_run)
    show(forget_view(name, gone, dry_run=options.dry_run, place=str(place)), options)
    if not options.dry_run:
        sys.stderr.write(
            "the next pull brings it back as long as the inventory has it; `store vacuum` frees the space\n"
        )
        tell_copies(place)
    return 0
