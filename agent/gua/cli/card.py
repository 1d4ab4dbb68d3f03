"""`gua card list` and `gua card retire`: the cards of this host's history."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gua.cli.common import add_store_options, locate_database, open_settings
from gua.cli.output import add_format_option, emit_document
from gua.cli.screen import read_screen
from gua.errors import ExitStatus, GuaError

if TYPE_CHECKING:
    from gua.cards import Cards
    from gua.clock import Clock

# A pipe gets every column.
_PIPE_COLUMNS = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="list or retire")
    listing = actions.add_parser("list", help="every card ever seen here")
    add_format_option(listing)
    retire = actions.add_parser("retire", help="expect a card no longer; its history stays")
    retire.add_argument("card", metavar="UUID", help="the card's UUID, or as much of its beginning as no other has")
    retire.add_argument("--force", action="store_true", help="also one that answers now; the next tick brings it back")
    for action in (listing, retire):
        add_store_options(action)


def run(options: argparse.Namespace) -> int:
    """List, or retire one."""
    from gua.clock import SystemClock

    location, clock = locate_database(options, open_settings(options)), SystemClock()
    if options.action == "list":
        return _list(location.path, clock.now_ms(), options.format)
    return _retire(location.path, clock, options.card, force=options.force)


def _list(database: Path, now_ms: int, form: str) -> int:
    from gua.render_cards import render_cards

    document = _read(database, now_ms)
    if form == "json":
        emit_document(document, None)
    else:
        sys.stdout.write(render_cards(document, read_screen(pipe_columns=_PIPE_COLUMNS).width))
    return int(ExitStatus.OK)


def _retire(database: Path, clock: Clock, wanted: str, *, force: bool) -> int:
    from gua.cards import answers, find_card
    from gua.privileges import become_owner
    from gua.recording import open_recording
    from gua.text import shown

    become_owner(database)
    card = find_card(_read(database, clock.now_ms())["cards"], wanted)
    name = shown(card["uuid"])
    if answers(card) and not force:
        raise GuaError(f"{name} answers now, so the next tick would bring it back; --force retires it all the same")
    with open_recording(database, clock, fake=False, alone=False) as writer:
        writer.retire_card(card["uuid"], clock.now_ms())
    sys.stdout.write(f"{name} is retired: expected no longer; its history stays, and it comes back when it is seen\n")
    return int(ExitStatus.OK)


def _read(database: Path, now_ms: int) -> Cards:
    from gua.cards import to_document
    from gua.store.database import open_reader

    with open_reader(database) as reader:
        host = reader.host()
        interval_ms = None if host is None else host.interval_ms
        return to_document(
            reader.devices(), reader.now(), reader.last_seen_ms(), interval_ms=interval_ms, now_ms=now_ms
        )
