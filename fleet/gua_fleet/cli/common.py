"""What all fleet commands share: the options that choose hosts and say how to ask, and asking."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from gua.cli.screen import read_screen
from gua.errors import UsageError
from gua.units import parse_duration_ms
from gua_fleet.ask import Answers, ask_inventory, exit_status
from gua_fleet.inventory.load import Inventory, load_inventory
from gua_fleet.model import HostResult
from gua_fleet.probes.probe import Probe
from gua_fleet.progress import watched
from gua_fleet.show import one_line
from gua_fleet.ssh.sweep import SweepSettings

__all__ = [
    "Answers",
    "add_fleet_options",
    "add_inventory_options",
    "ask_fleet",
    "exit_status",
    "fleet_document",
    "print_text",
    "read_inventory",
    "table_columns",
]


def add_inventory_options(parser: argparse.ArgumentParser) -> None:
    """`--hosts` and `--limit`."""
    parser.add_argument(
        "--hosts",
        metavar="INVENTORY",
        help="Ansible inventory: a file, a directory, or `host1,host2,` "
        "(default: GUA_FLEET_HOSTS, else the one ansible.cfg names, else ./inventory.yml)",
    )
    parser.add_argument("--limit", metavar="PATTERN", help="only hosts that match this Ansible host pattern")


def add_fleet_options(parser: argparse.ArgumentParser) -> None:
    """The options of every command that asks the hosts: `options` of ask_fleet must come from here."""
    add_inventory_options(parser)
    asking = parser.add_argument_group("how to ask")
    asking.add_argument("--forks", type=_count, default=32, metavar="N", help="hosts asked at once (default 32)")
    asking.add_argument(
        "--timeout", type=_seconds, default=20.0, metavar="TIME", help="hard deadline per host (default 20s)"
    )
    asking.add_argument(
        "--accept-new",
        action="store_true",
        help="record the host keys of hosts never seen before; a changed key is refused all the same",
    )
    asking.add_argument(
        "--allow-missing", type=_amount, default=0, metavar="N", help="exit 0 although up to N hosts failed"
    )


def fleet_document(schema: str, results: Sequence[HostResult]) -> dict[str, Any]:
    """{"schema", "hosts": [{"name", "outcome", "detail", "document": the host's own or null}]}, every host in order."""
    hosts = [
        {"name": r.host.name, "outcome": r.outcome_text, "detail": r.detail, "document": r.document} for r in results
    ]
    return {"schema": schema, "hosts": hosts}


def print_text(text: str) -> None:
    """Write to standard output; what its encoding cannot say is replaced, for a name must not end the run."""
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def table_columns() -> int | None:
    """The columns that a table on standard output has; None where it goes to a file or a program."""
    return read_screen(sys.stdout).width if sys.stdout.isatty() else None


def ask_fleet(options: argparse.Namespace, probe: Probe) -> Answers:
    """Read the inventory and ask all its hosts; says on stderr which inventory, its warnings, and how far it is.

    Raises FleetError when there is nothing to ask.
    """
    inventory = read_inventory(options)
    settings = SweepSettings(options.forks, options.timeout, options.accept_new)
    with watched(sys.stderr, each=getattr(options, "verbose", False)) as progress:
        return ask_inventory(inventory, probe, settings, progress=progress, notice=_notice)


def read_inventory(options: argparse.Namespace) -> Inventory:
    """The inventory the options choose; which one it is and what is odd about it goes to stderr."""
    inventory = load_inventory(options.hosts, limit=options.limit)
    number = len(inventory.hosts)
    sys.stderr.write(f"inventory: {inventory.source}, {number} host{'' if number == 1 else 's'}\n")
    for warning in inventory.warnings:
        sys.stderr.write(f"inventory: {one_line(warning, width=400)}\n")
    return inventory


def _notice(line: str) -> None:
    sys.stderr.write(f"ssh: {one_line(line, width=400)}\n")


def _amount(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"not a whole number: {text!r}")
    return int(text)


def _count(text: str) -> int:
    if _amount(text) < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        return parse_duration_ms(text) / 1000
    except UsageError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
