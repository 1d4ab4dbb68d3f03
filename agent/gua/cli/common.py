"""Options that several commands share, and what they lead to."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

from gua.config import Settings, load_settings
from gua.location import Location, database_path
from gua.text import shown


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """`--db` and `--settings`."""
    parser.add_argument("--db", type=Path, metavar="PATH", help="database (default: GUA_DB, the settings, this host's)")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="settings file, TOML (default: GUA_SETTINGS)")


def add_cloud_option(parser: argparse.ArgumentParser) -> None:
    """`--config`, the enrolment file's name of old."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="enrolment (default: GUA_CONFIG, cloud.json beside the database)"
    )


def add_fake_option(parser: argparse.ArgumentParser) -> None:
    """`--fake`."""
    parser.add_argument("--fake", action="store_true", help="sample a made-up host instead of this one's GPUs")


def open_settings(options: argparse.Namespace, **flags: Optional[str]) -> Settings:
    """The settings in force. flags: text of the flags that beat a setting, named `section_key`; None: not given.

    Raises ConfigError.
    """
    overrides: Mapping[str, tuple[str, str]] = {
        name.replace("_", ".", 1): (f"--{name.partition('_')[2].replace('_', '-')}", text)
        for name, text in flags.items()
        if text is not None
    }
    return load_settings(file=options.settings, overrides=overrides)


def locate_database(options: argparse.Namespace, settings: Settings) -> Location:
    """The database to use, said on stderr unless a controller asks. Raises ConfigError."""
    location = database_path(options.db, settings.store_path)
    if getattr(options, "frame", None) is None:
        tell(f"database {location}")
    return location


def keep_sampling_to_findings() -> None:
    """Say nothing on stderr of what went wrong with NVML: a command that samples once has it in its answer."""
    logging.getLogger("gua.nvml").addHandler(logging.NullHandler())


def tell(line: str) -> None:
    """One line to people, on stderr."""
    sys.stderr.write(f"gua: {shown(line, 1000)}\n")
