"""`gua-fleet hosts`: what was understood of the inventory."""

from __future__ import annotations

import argparse

from gua.cli.output import add_format_option, emit_document
from gua.errors import ExitStatus
from gua_fleet.cli.common import add_inventory_options, print_text, read_inventory, table_columns
from gua_fleet.render import table
from gua_fleet.view_rows import HOST_HEADERS, host_document, host_rows


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: which inventory, which form. No host is connected to."""
    add_inventory_options(parser)
    add_format_option(parser, "table")


def run(options: argparse.Namespace) -> int:
    """Print the hosts. Raises InventoryError when there is none."""
    inventory = read_inventory(options)
    if options.format == "json":
        hosts = [host_document(host) for host in inventory.hosts]
        notes = {"source": inventory.source, "warnings": list(inventory.warnings)}
        emit_document({"schema": "gua.fleet-hosts/1", **notes, "hosts": hosts}, None)
    else:
        print_text(table(HOST_HEADERS, host_rows(inventory.hosts), table_columns()))
    return int(ExitStatus.OK)
