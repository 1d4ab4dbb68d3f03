"""`gua-fleet hosts`: what was understood of the inventory."""

from __future__ import annotations

import argparse

from gua.errors import ExitStatus
from gua_fleet.cli.common import add_inventory_options, read_inventory
from gua_fleet.cli.view import add_view_options, check_output, show
from gua_fleet.view_inventory import hosts_view


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: which inventory, which form. No host is connected to."""
    add_inventory_options(parser)
    add_view_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print the hosts. Raises InventoryError when there is none."""
    check_output(options.output)
    inventory = read_inventory(options)
    show(hosts_view(inventory.hosts, source=inventory.source, warnings=inventory.warnings), options)
    return int(ExitStatus.OK)
