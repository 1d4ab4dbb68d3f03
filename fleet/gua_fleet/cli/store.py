"""The option that says which store, for every command that has to do with one."""

from __future__ import annotations

import argparse
from typing import Any

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
