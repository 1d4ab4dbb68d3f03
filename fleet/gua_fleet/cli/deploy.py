"""`gua-fleet deploy` and its kin, one for each playbook: run it on the inventory."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from gua import __version__
from gua_fleet.cli.common import add_inventory_options
from gua_fleet.deploy import WITHOUT_HOSTS, playbook_command, playbook_environment
from gua_fleet.errors import FleetError
from gua_fleet.inventory.source import find_source


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: which hosts. All else is Ansible's, after `--`."""
    add_inventory_options(parser)
    parser.add_argument(
        "arguments",
        nargs="*",
        metavar="-- ARGUMENT",
        help="for ansible-playbook, such as --check --diff, --forks 20 or --ask-become-pass",
    )


def run(options: argparse.Namespace) -> int:
    """Become ansible-playbook: its output, its questions and its exit status are what the user gets.

    Raises InventoryError when there is no inventory, PlaybooksMissing.
    """
    inventory: Sequence[str] = ()
    if options.command not in WITHOUT_HOSTS:
        source = find_source(options.hosts or (), configured=options.config.hosts)
        sys.stderr.write(f"inventory: {source.words}\n")
        inventory = source.arguments
    command = playbook_command(options.command, inventory, _arguments(options))
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(command[0], command, playbook_environment(options.command))
    except OSError as exc:
        raise FleetError(f"ansible-playbook cannot be started: {exc.strerror}") from exc


def _arguments(options: argparse.Namespace) -> Sequence[str]:
    # An upgrade names its version: the one this controller brings, unless the user's own variables say otherwise.
    arguments = ["-e", f"gua_agent_version={__version__}"] if options.command == "upgrade" else []
    if options.limit:
        arguments += ["--limit", options.limit]
    for variables in options.extra_vars or ():
        arguments += ["-e", variables]
    for file in options.vault_password_files or [options.config.vault_password_file]:
        arguments += ["--vault-password-file", str(file)] if file else []
    for vault_id in options.vault_ids or ():
        arguments += ["--vault-id", vault_id]
    if options.ask_vault_pass:
        arguments += ["--ask-vault-pass"]
    return [*arguments, *options.arguments]
