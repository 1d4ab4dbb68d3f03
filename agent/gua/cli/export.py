"""`gua export`: the history since a revision, in checksummed chunks, for a program to keep."""

from __future__ import annotations

import argparse
import os
import secrets
import sys

from gua.cli.common import add_store_options, locate_database, open_settings
from gua.cli.output import add_frame_option
from gua.errors import ExitStatus, GuaError, UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since-rev", type=_revision, required=True, metavar="N", help="revisions after this one; 0 for everything"
    )
    parser.add_argument("--until-rev", type=_revision, metavar="M", help="up to this one (default: the newest)")
    parser.add_argument("--rollups-only", action="store_true", help="sums and holds, without raw ticks")
    add_store_options(parser)
    add_frame_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the export to stdout. Exit status 1 when stdout closed before its end."""
    from gua import __version__
    from gua.clock import SystemClock
    from gua.export.stream import Asked, write_stream
    from gua.store.database import open_reader

    if options.until_rev is not None and options.until_rev < options.since_rev:
        raise UsageError("--until-rev lies before --since-rev")
    if sys.stdout.isatty():
        raise UsageError("an export is compressed, not text: send it to a file or another program")
    database = locate_database(options, open_settings(options)).path
    asked = Asked(options.since_rev, options.until_rev, options.rollups_only)
    nonce = options.frame or secrets.token_hex(16)
    try:
        with open_reader(database) as reader:
            now_ms = SystemClock().now_ms()
            write_stream(reader, sys.stdout.buffer, asked, nonce=nonce, agent_version=__version__, now_ms=now_ms)
    except BrokenPipeError as exc:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered must not fail once more at exit
        raise GuaError("stdout was closed before the end: go on after the last whole chunk, with --since-rev") from exc
    return int(ExitStatus.OK)


def _revision(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number
