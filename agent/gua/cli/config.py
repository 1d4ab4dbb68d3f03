"""`gua config check`: are the settings right, and which are in force?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gua.config import KEYS, describe_default, load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = settings_help()
    parser.add_argument("action", choices=("check",), help="read the settings as every command does")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="settings file, TOML (default: GUA_SETTINGS)")


def run(options: argparse.Namespace) -> int:
    """Say that the settings are right. A wrong one is a ConfigError, exit status 2."""
    settings = load_settings(file=options.settings)
    source = "no settings file, defaults and environment" if settings.file is None else str(settings.file)
    sys.stdout.write(f"settings are right ({source})\n")
    return 0


def settings_help() -> str:
    """Every key with its variable, default and meaning, from the one table of keys."""
    lines = ["keys of the settings file (TOML), and their environment variables:"]
    for key in KEYS:
        lines.append(f"  [{key.section}] {key.name}   {key.variable}   (default: {describe_default(key)})")
        lines.append(f"      {key.meaning}; {key.kind.value}")
    return "\n".join(lines)
