"""The option that says which store, for every command that has to do with one."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gua.store.copies import find_copies
from gua_fleet.store.place import Place, find_place


def add_store_option(parser: Any) -> None:
    """`--store`; parser: or a group of one. What is not given comes from the settings, see `store_place`."""
    parser.add_argument(
        "--store",
        metavar="PATH|URL",
        help="the fleet's store: a file, or postgresql://USER@HOST/DATABASE "
        "(default: GUA_FLEET_STORE, else gua-fleet.yml, else ~/.local/share/gua/fleet.db)",
    )


def store_place(options: argparse.Namespace) -> Place:
    """The store that the options and settings name. Raises StoreUnusable."""
    return find_place(options.store)


def tell_copies(place: Place) -> None:
    """Say on standard error which copies of the store still have what was just removed from it."""
    copies = find_copies(place.path) if place.path is not None else []
    if copies:
        names = ", ".join(str(copy.path) for copy in copies)
        sys.stderr.write(f"the store as it was before its schema changed still has it, for 30 days: remove {names}\n")
