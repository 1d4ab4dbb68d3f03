"""`gua daemon`: samples until told to stop."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Mapping

from gua.cli.common import add_fake_option, add_store_options, locate_database, open_settings, tell
from gua.daemon.log_budget import LogBudget
from gua.errors import ExitStatus, UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--foreground",
        action="store_true",
        help="stay in the foreground, as systemd wants it (needed: there is no background yet)",
    )
    parser.add_argument("--interval", metavar="DURATION", help="time between two samples (default: 30s)")
    add_store_options(parser)
    add_fake_option(parser)


def run(options: argparse.Namespace) -> int:
    """Sample until SIGTERM or SIGINT."""
    if not options.foreground:
        raise UsageError("there is no background daemon yet: run `gua daemon --foreground`, or let systemd run it")
    from gua.clock import SystemClock
    from gua.daemon.serve import serve
    from gua.privileges import become_owner

    settings = open_settings(options, daemon_interval=options.interval)
    location = locate_database(options, settings)
    owner = become_owner(location.path)
    if owner is not None:
        tell(f"going on as {owner}, who owns the database")
    configure_logging()
    serve(settings, location.path, SystemClock(), fake=options.fake)
    return int(ExitStatus.OK)


def configure_logging(environ: Mapping[str, str] = os.environ) -> None:
    """Log to stderr; the journal has times of its own."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(LogBudget())
    stamp = "" if environ.get("JOURNAL_STREAM") else "%(asctime)s "
    handler.setFormatter(logging.Formatter(stamp + "%(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
