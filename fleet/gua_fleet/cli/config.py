"""`gua-fleet config`: are the settings right, what are they, and where is each from."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gua.clock import SystemClock
from gua.errors import ExitStatus
from gua.units import to_iso
from gua_fleet.cli.common import add_inventory_options, print_text, table_columns
from gua_fleet.config import FILE_ONLY, KEYS, FleetConfig
from gua_fleet.render import Cell, table
from gua_fleet.show import one_line
from gua_fleet.store.place import without_password

_HEADERS = ("setting", "value", "from")
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms"))


def configure(parser: argparse.ArgumentParser) -> None:
    """`check` or `show`; the help lists every key."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    lines = [f"  {key.name:20} {key.meaning} (default: {key.default})" for key in KEYS]
    lines += [f"  {name:20} {meaning}" for name, meaning in FILE_ONLY.items()]
    parser.epilog = "keys of gua-fleet.yml; all but the last two are also GUA_FLEET_KEY:\n" + "\n".join(lines)
    parser.add_argument("action", choices=("check", "show"), help="check: is it right; show: what is in force")
    add_inventory_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print the settings in force. What is wrong with them was raised before (exit status 2)."""
    config: FleetConfig = options.config
    for warning in config.warnings:
        sys.stderr.write(f"config: {one_line(warning, width=400)}\n")
    if options.action == "check":
        print_text(_verdict(config))
    else:
        print_text(table(_HEADERS, _rows(config), table_columns()))
    return int(ExitStatus.OK)


def _verdict(config: FleetConfig) -> str:
    if config.file is None:
        return "no gua-fleet.yml found; the defaults and the environment are right\n"
    now_ms = SystemClock().now_ms()
    over = [excuse for excuse in config.excuses if excuse.until_ms is not None and excuse.until_ms <= now_ms]
    names, excuses = len(config.users.aliases), len(config.excuses)
    mapped = f"{names} name{'' if names == 1 else 's'} mapped, {excuses} excuse{'' if excuses == 1 else 's'}"
    lines = [f"{config.file}: right; {mapped}\n"]
    lines += [f"over since {to_iso(excuse.until_ms or 0)}: {one_line(excuse.reason)}\n" for excuse in over]
    return "".join(lines)


def _rows(config: FleetConfig) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = [
        (key.name, _shown(config[key.name], key.default), config.origins.get(key.name, "default")) for key in KEYS
    ]
    for person in dict.fromkeys(config.users.aliases.values()):
        names = [name for name, owner in config.users.aliases.items() if owner == person]
        rows.append((f"user: {person}", ", ".join(names), str(config.file)))
    for excuse in config.excuses:
        until = "" if excuse.until_ms is None else f" until {to_iso(excuse.until_ms)}"
        patterns = {name: getattr(excuse, name) for name in ("user", "host", "process", "card")}
        parts = [f"{name} {pattern}" for name, pattern in patterns.items() if pattern]
        rows.append((f"excuse: {', '.join(parts)}", f"{excuse.reason}{until}", str(config.file)))
    return rows


def _duration(seconds: float) -> str:
    """As it is written in the file: `30d`, `90s`, `1500ms`."""
    ms = round(seconds * 1000)
    size, unit = next((size, unit) for size, unit in _UNITS if ms % size == 0)
    return f"{ms // size}{unit}"


def _shown(value: Any, default: str) -> str:
    if value is None or value == ():
        return default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _duration(value)
    return ", ".join(value) if isinstance(value, tuple) else without_password(str(value))
