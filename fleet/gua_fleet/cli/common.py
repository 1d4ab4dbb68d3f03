"""What all fleet commands share: the options that choose hosts and say how to ask, and asking."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from gua.cli.screen import read_screen
from gua.errors import UsageError
from gua.units import parse_duration_ms
from gua_fleet.ask import Answers, ask_inventory, exit_status, with_passphrases, with_passwords
from gua_fleet.config import FILE_NAME, FleetConfig
from gua_fleet.host_names import complete_hosts, remember_names
from gua_fleet.inventory.load import Inventory, Selection, load_inventory
from gua_fleet.inventory.source import find_source
from gua_fleet.model import HostResult
from gua_fleet.probes.probe import Probe
from gua_fleet.progress import watched
from gua_fleet.prompt import somebody_is_there
from gua_fleet.show import one_line
from gua_fleet.ssh.settings import SweepSettings

__all__ = [
    "Answers",
    "add_config_option",
    "add_fleet_options",
    "add_inventory_options",
    "ask_again",
    "ask_fleet",
    "exit_status",
    "fleet_document",
    "print_text",
    "read_inventory",
    "seconds",
    "sweep_settings",
    "table_columns",
]


def add_config_option(parser: argparse.ArgumentParser) -> None:
    """`--config`. A command that has it finds the settings in force in `options.config`."""
    parser.add_argument(
        "--config",
        dest="config_file",
        metavar="FILE",
        help=f"settings file (default: GUA_FLEET_CONFIG, else {FILE_NAME} here, beside the inventory, or in "
        "~/.config/gua-fleet)",
    )


def _pattern(text: str) -> str:
    """To Ansible an empty one is none, so that a variable without content would mean every host."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty: name hosts, or leave it out for all of them")
    return text


def add_inventory_options(parser: argparse.ArgumentParser) -> None:
    """Which hosts, and what Ansible needs to read about them. What is left out comes from the settings."""
    add_config_option(parser)
    group = parser.add_argument_group("which hosts")
    group.add_argument(
        *("-i", "--hosts"),
        action="append",
        metavar="INVENTORY",
        help="Ansible inventory: a file, a directory, or `host1,host2,`; may be given several times "
        f"(default: GUA_FLEET_HOSTS, else {FILE_NAME}, else the one ansible.cfg names, else ./inventory.yml)",
    )
    limit = group.add_argument(
        *("-l", "--limit"),
        type=_pattern,
        metavar="PATTERN",
        help="only hosts that match this Ansible pattern, or @FILE",
    )
    limit.completer = complete_hosts  # type: ignore[attr-defined]  # argcomplete looks for it
    group.add_argument(
        *("-e", "--extra-vars"),
        action="append",
        metavar="VARS",
        help="variables that beat all others: k=v, JSON, @FILE",
    )
    group.add_argument(
        *("--vault-password-file", "--vault-pass-file"),
        dest="vault_password_files",
        action="append",
        metavar="FILE",
        help="file (or program) that gives a vault password",
    )
    group.add_argument("--vault-id", dest="vault_ids", action="append", metavar="ID", help="NAME@FILE or NAME@prompt")
    group.add_argument(
        *("-J", "--ask-vault-pass", "--ask-vault-password"),
        dest="ask_vault_pass",
        action="store_true",
        help="ask for the vault password, once",
    )


_VERBOSE = "a line on standard error for each host, when it is done"


def add_fleet_options(parser: argparse.ArgumentParser, *, verbose: bool = True, more: str = "") -> None:
    """The options of every command that asks the hosts: `options` of ask_fleet must come from here.

    verbose: offer `--verbose`. more: what that shows beside the lines.
    """
    add_inventory_options(parser)
    asking = parser.add_argument_group("how to ask")
    asking.add_argument("--forks", type=_count, metavar="N", help="hosts asked at once (default 32)")
    asking.add_argument("--timeout", type=seconds, metavar="TIME", help="hard deadline per host (default 20s)")
    asking.add_argument(
        *("-k", "--ask-pass"), action="store_true", help="ask for the password to log in with, once for all hosts"
    )
    asking.add_argument(
        *("-K", "--ask-become-pass"),
        action="store_true",
        help="ask for the password sudo wants, once for all hosts",
    )
    asking.add_argument(
        "--accept-new",
        action="store_true",
        help="record the host keys of hosts never seen before; a changed key is refused all the same",
    )
    asking.add_argument("--allow-missing", type=_amount, metavar="N", help="exit 0 although up to N hosts failed")
    parser.set_defaults(verbose=False)
    if verbose:
        asking.add_argument("-v", "--verbose", action="store_true", help=f"{_VERBOSE}{more}")


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
    settings = sweep_settings(options)
    with watched(sys.stderr, each=options.verbose) as progress:
        return ask_inventory(inventory, probe, settings, progress=progress, notice=_notice)


def ask_again(
    options: argparse.Namespace, answers: Answers, names: Collection[str], probe: Probe
) -> tuple[HostResult, ...]:
    """Ask some hosts of an earlier sweep another question: one result for each of them, in the same order."""
    hosts = [result.host for result in answers.results if result.host.name in names]
    inventory = replace(answers.inventory, hosts=tuple(hosts))
    with watched(sys.stderr, each=options.verbose) as progress:
        return ask_inventory(inventory, probe, sweep_settings(options), progress=progress, notice=_notice).results


def sweep_settings(options: argparse.Namespace) -> SweepSettings:
    """How to ask, as the options say."""
    return SweepSettings(options.forks, options.timeout, options.accept_new)


def read_inventory(options: argparse.Namespace) -> Inventory:
    """The inventory the options choose; which one it is and what is odd about it goes to stderr.

    Passwords that the options want typed are asked for here, once, and are in the hosts afterwards. So are passphrases
    of keys where somebody is there; where nobody is, a host whose keys are all locked is refused when it is asked.
    """
    config: FleetConfig = options.config
    vault_files = options.vault_password_files or [config.vault_password_file]
    selection = Selection(
        limit=options.limit,
        extra_vars=tuple(options.extra_vars or ()),
        vault_password_files=tuple(file for file in vault_files if file),
        vault_ids=tuple(options.vault_ids or ()),
        ask_vault_password=options.ask_vault_pass,
    )
    inventory = load_inventory(find_source(options.hosts or (), configured=config.hosts), selection=selection)
    remember_names(inventory.hosts)
    number = len(inventory.hosts)
    sys.stderr.write(f"inventory: {inventory.source}, {number} host{'' if number == 1 else 's'}\n")
    for warning in (*config.warnings, *inventory.warnings):
        sys.stderr.write(f"inventory: {one_line(warning, width=400)}\n")
    if "ask_pass" not in options:
        return inventory
    inventory = with_passwords(inventory, ask_pass=options.ask_pass, ask_become=options.ask_become_pass)
    return with_passphrases(inventory) if somebody_is_there() else inventory


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


def seconds(text: str) -> float:
    """An option's duration, such as `4h`, in seconds."""
    try:
        return parse_duration_ms(text) / 1000
    except UsageError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
