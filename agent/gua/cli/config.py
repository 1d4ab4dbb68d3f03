"""`gua config`: are the settings right, and which are in force?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gua.cli.output import add_format_option, emit_document
from gua.config import (
    DEFAULT,
    KEYS,
    MODEL_KEYS,
    Key,
    Settings,
    describe_default,
    describe_value,
    load_settings,
    written_settings,
)
from gua.config_values import Kind, parse_value
from gua.model import Rule
from gua.text import shown

SCHEMA = "gua.config/1"
_ACTIONS = {"check": "say whether they are right, and which are in force", "show": "which are in force"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = settings_help()
    parser.add_argument(
        "action", choices=_ACTIONS, help="; ".join(f"{name}: {does}" for name, does in _ACTIONS.items())
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", help="settings file, TOML (default: GUA_SETTINGS)")
    add_format_option(parser)


def run(options: argparse.Namespace) -> int:
    """Say what is in force and why, and which rules that makes; `check`: first that it is right.

    A wrong one is a ConfigError, exit status 2.
    """
    settings = load_settings(file=options.settings)
    written = written_settings(options.settings)
    if options.format == "json":
        emit_document(to_document(settings, written), None)
        return 0
    if options.action == "check":
        source = "no settings file, defaults and environment" if settings.file is None else str(settings.file)
        sys.stdout.write(f"settings are right ({source})\n")
    for key, (value, where) in written.items():
        sys.stdout.write(f"[{key.section}] {key.name} = {shown(describe_value(value), 200)}   ({shown(where, 200)})\n")
    sys.stdout.write(f"rule of every card: {describe_rule(settings.rule)}\n")
    for entry in settings.rules.models:
        sys.stdout.write(f"rule of cards like {shown(entry.match)}: {describe_rule(entry.rule)}\n")
    return 0


def to_document(settings: Settings, written: Mapping[Key, tuple[Any, str]]) -> dict[str, Any]:
    """`gua.config/1`: all that is in force. written: as `written_settings` gives it, all of it right. Pure."""
    return {
        "schema": SCHEMA,
        "file": None if settings.file is None else str(settings.file),
        "settings": {_name(key): _entry(key, value, where) for key, (value, where) in written.items()},
        "rule": asdict(settings.rule),
        "models": [{"match": entry.match, **asdict(entry.rule)} for entry in settings.rules.models],
    }


def _name(key: Key) -> str:
    """A key's path with its unit, as far as its own name has none: `daemon.interval_s`."""
    return f"{key.path}_s" if key.kind is Kind.DURATION else key.path


def _entry(key: Key, value: Any, where: str) -> dict[str, Any]:
    """value: what it means, None where it is not set. where: file and key, or the variable; None for a default."""
    if where == DEFAULT:
        return {"value": _meant(key, value), "source": "default", "where": None}
    source = "environment" if where == key.variable else "file"
    return {"value": _meant(key, value), "source": source, "where": where}


def _meant(key: Key, value: Any) -> Any:
    if value is None:
        return None
    meant = parse_value(key.kind, value)
    if key.kind is Kind.DURATION:
        return meant / 1000
    return str(meant) if isinstance(meant, Path) else meant


def describe_rule(rule: Rule) -> str:
    """The thresholds in one line. Pure."""
    return (
        f"active from {rule.active_util_pct} %, held above {rule.held_mb} MB, unattributed above"
        f" {rule.unattributed_mb} MB ({rule.unattributed_v1_mb} MB by the v1 reading), long from {rule.long_idle_s} s"
    )


def settings_help() -> str:
    """Every key with its variable, default and meaning, from the one table of keys."""
    lines = ["keys of the settings file (TOML), and their environment variables:"]
    for key in KEYS:
        lines.append(f"  [{key.section}] {key.name}   {key.variable}   (default: {describe_default(key)})")
        lines.append(f"      {key.meaning}; {key.kind.value}")
    names = ", ".join(key.name for key in MODEL_KEYS)
    lines.append("  [[rule.model]], as often as needed: a rule for the cards of one model; the first that fits counts")
    lines.append(f"      {names}; match is {MODEL_KEYS[0].kind.value}, the rest is as in [rule] when left out")
    return "\n".join(lines)
