"""`gua version`."""

from __future__ import annotations

import argparse
import sys

from gua import __version__


def configure(parser: argparse.ArgumentParser) -> None:
    """No options; but it is the version of several programs, and says of which."""
    parser.set_defaults(program=parser.prog.split()[0])


def run(options: argparse.Namespace) -> int:
    """Print the version on stdout."""
    sys.stdout.write(f"{options.program} {__version__}\n")
    return 0
