"""`gua version`."""

from __future__ import annotations

import argparse
import sys

from gua import __version__


def configure(parser: argparse.ArgumentParser) -> None:
    """No options."""


def run(options: argparse.Namespace) -> int:
    """Print the version on stdout."""
    sys.stdout.write(f"gua {__version__}\n")
    return 0
