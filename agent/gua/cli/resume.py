"""`gua resume`: ends a pause."""

from __future__ import annotations

import argparse
import sys

from gua.cli.common import add_store_options, locate_database, open_settings
from gua.errors import ExitStatus


def configure(parser: argparse.ArgumentParser) -> None:
    add_store_options(parser)


def run(options: argparse.Namespace) -> int:
    """Take the request back; that there was none is no failure."""
    from gua.daemon.lock import is_locked
    from gua.daemon.pause import remove_pause
    from gua.privileges import become_owner

    location = locate_database(options, open_settings(options))
    become_owner(location.path)
    ended = "the pause is over" if remove_pause(location.path) else "there was no pause"
    daemon = "the daemon samples within a second" if is_locked(location.path) else "no gua daemon runs here"
    sys.stdout.write(f"{ended}; {daemon}\n")
    return int(ExitStatus.OK)
