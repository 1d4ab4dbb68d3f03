"""`gua start`: the daemon in the background, whatever `gua daemon` was asked for."""

from __future__ import annotations

import argparse

from gua.cli import daemon


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `gua daemon`."""
    daemon.add_daemon_options(parser)
    parser.set_defaults(foreground=False)


def run(options: argparse.Namespace) -> int:
    """See `gua.cli.daemon.run`."""
    return daemon.run(options)
