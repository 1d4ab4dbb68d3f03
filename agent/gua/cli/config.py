"""`gua config check`: are the settings right, and which are in force?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gua.config import KEYS, MODEL_KEYS, describe_default, describe_value, load_settings, written_settings
from gua.model import Rule
from gua.text import shown


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = settings_help()
    parser.add_argument("action", choices=("check",), help="read the settings as every command does")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="settings file, TOML (default: GUA_SETTINGS)")


def run(options: argparse.Namespace) -> int:
    """Say that the settings are right, what is in force and why, and which rules that makes.

    A wrong one is a ConfigError, exit status 2.
    """
    settings = load_settings(file=options.settings)
    source = "no settings file, defaults and environment" if settings.file is None else str(settings.file)
    sys.stdout.write(f"settings are right ({source})\n")
    for key, (value, where) in written_settings(options.settings).items():
        sys.stdout.write(f"[{key.section}] {key.name} = {shown(describe_value(value), 200)}   ({shown(where, 200)})\n")
    sys.stdout.write(f"rule of every card: {describe_rule(settings.rule)}\n")
    for entry in settings.rules.models:
        sys.stdout.write(f"rule of cards like {shown(entry.match)}: {describe_rule(entry.rule)}\n")
    return 0


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
