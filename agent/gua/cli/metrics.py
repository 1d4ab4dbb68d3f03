"""`gua metrics`: the present state and today's sums for Prometheus."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gua.cli.common import add_cloud_option, add_store_options, locate_database, open_settings
from gua.errors import ExitStatus


def configure(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument(
        "--textfile", type=Path, metavar="DIR", help="write DIR/gua.prom, for node_exporter's textfile collector"
    )
    parser.add_argument("--per-user", action="store_true", help="with people's names")
    add_cloud_option(parser)
    add_store_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print or write them. Exit status 2 without a database."""
    from gua.clock import SystemClock
    from gua.daemon.metrics import read_metrics
    from gua.metrics.write import write_textfile

    settings = open_settings(options)
    database = locate_database(options, settings).path
    text = read_metrics(
        database,
        SystemClock(),
        scheduler=settings.scheduler,
        per_user=options.per_user,
        enrolment=options.config,
    )
    if options.textfile is None:
        sys.stdout.write(text)
    else:
        write_textfile(options.textfile, text)
    return int(ExitStatus.OK)
