"""How the small commands show what they found: the options for it, and writing it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from gua.cli.output import add_format_option
from gua.errors import GuaError, UsageError
from gua_fleet.cli.common import print_text, table_columns
from gua_fleet.view import View, rendered
from gua_fleet.write_file import write_atomically

FORMS = ("md", "csv")


def add_view_options(parser: argparse.ArgumentParser, *, people: bool = False) -> None:
    """`--format`, `--json`, `-o`; people: also `--no-names`."""
    view = parser.add_argument_group("how it is shown")
    add_format_option(view, "table", FORMS)
    view.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to standard output")
    if people:
        view.add_argument(
            "--no-names",
            dest="names",
            action="store_const",
            const=False,
            help="no names of people or processes: fit to be shown to anyone",
        )


def check_output(output: Path | None) -> None:
    """Raise UsageError where nothing can be written: better before all hosts are asked than after."""
    if output is None:
        return
    if not output.parent.is_dir():
        raise UsageError(f"-o {output}: there is no directory {output.parent}; make it first")
    if output.is_dir():
        raise UsageError(f"-o {output}: is a directory; name a file in it")
    if not os.access(output if output.exists() and not output.is_file() else output.parent, os.W_OK):
        raise UsageError(f"-o {output}: cannot be written")


def write_output(output: Path, content: bytes) -> None:
    """Write the file whole or not at all, and say so on stderr. Raises GuaError."""
    try:
        write_atomically(output, content)
    except OSError as exc:
        raise GuaError(f"-o {output}: cannot be written: {exc.strerror}") from exc
    sys.stderr.write(f"written: {output}\n")


def show(view: View, options: argparse.Namespace) -> None:
    """Write the view in the form and to the place that the options say."""
    if options.output is not None:
        write_output(options.output, rendered(view, options.format, None).encode())
    else:
        print_text(rendered(view, options.format, table_columns()))
