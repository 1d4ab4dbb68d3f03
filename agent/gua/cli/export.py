"""`gua export`: the history since a revision, in checksummed chunks, for a program to keep."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import sys
from collections.abc import Iterator

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
    with open_reader(database) as reader:
        now_ms, out = SystemClock().now_ms(), _Stdout()
        write_stream(reader, out, asked, nonce=nonce, agent_version=__version__, now_ms=now_ms)
    return int(ExitStatus.OK)


class _Stdout:
    """stdout for bytes, whose errors are told apart from those of the database. Raises GuaError."""

    def write(self, data: bytes) -> None:
        with self._errors():
            sys.stdout.buffer.write(data)

    def flush(self) -> None:
        with self._errors():
            sys.stdout.buffer.flush()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered must not fail once more at exit
            cause = "stdout was closed" if isinstance(exc, BrokenPipeError) else f"stdout fails ({exc.strerror})"
            raise GuaError(f"{cause} before the end: go on after the last whole chunk, with --since-rev") from exc


def _revision(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number
