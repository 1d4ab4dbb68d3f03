"""`gua-fleet config`: are the settings right, what are they, and where is each from."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gua.clock import SystemClock
from gua.errors import ExitStatus
from gua_fleet.cli.common import add_inventory_options
from gua_fleet.cli.view import add_view_options, check_output, show
from gua_fleet.config import FILE_ONLY, KEYS, FleetConfig
from gua_fleet.show import one_line
from gua_fleet.view_config import check_view, show_view


def configure(parser: argparse.ArgumentParser) -> None:
    """`check` or `show`; the help lists every key."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    lines = [f"  {key.name:20} {key.meaning} (default: {key.default})" for key in KEYS]
    lines += [f"  {name:20} {meaning}" for name, meaning in FILE_ONLY.items()]
    parser.epilog = "keys of gua-fleet.yml; all but the last two are also GUA_FLEET_KEY:\n" + "\n".join(lines)
    parser.add_argument("action", choices=("check", "show"), help="check: is it right; show: what is in force")
    add_inventory_options(parser)
    add_view_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print the settings in force. What is wrong with them was raised before (exit status 2)."""
    check_output(options.output)
    config: FleetConfig = options.config
    for warning in config.warnings:
        sys.stderr.write(f"config: {one_line(warning, width=400)}\n")
    given = _given(options, config)
    check = options.action == "check"
    show(check_view(config, given, SystemClock().now_ms()) if check else show_view(config, given), options)
    return int(ExitStatus.OK)


def _given(options: argparse.Namespace, config: FleetConfig) -> dict[str, Any]:
    """The settings that this command line gives, by their names."""
    given: dict[str, Any] = {}
    if options.hosts:
        given["hosts"] = tuple(options.hosts)
    if options.limit != config.limit:  # what was not given was filled in
        given["limit"] = options.limit
    if options.vault_password_files:
        given["vault_password_file"] = ", ".join(options.vault_password_files)
    return given
