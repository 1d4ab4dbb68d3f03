"""How the small commands show what they found: the options for it, and writing it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from gua.cli.output import add_format_option
from gua.errors import GuaError, UsageError
from gua_fleet.cli.common import print_text, seconds, table_columns
from gua_fleet.view import View, rendered
from gua_fleet.view_html import render_page
from gua_fleet.write_file import write_atomically

FORMS = ("md", "csv")
_LEAST_REFRESH_S, _MOST_REFRESH_S = 5, 86_400


def add_view_options(parser: argparse.ArgumentParser, *, people: bool = False, page: bool = False) -> None:
    """`--format`, `--json`, `-o`; people: also `--no-names`; page: also `--format html` with `--refresh`."""
    view = parser.add_argument_group("how it is shown")
    add_format_option(view, "table", (*FORMS, "html") if page else FORMS)
    if page:
        view.add_argument(
            "--refresh",
            dest="refresh_s",
            type=_refresh_s,
            metavar="TIME",
            help="how often whoever runs this makes the HTML page anew: it loads itself again so often, and says that "
            "it is out of date when it is three times as old (without: after 10 minutes)",
        )
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
    if options.format == "html":
        text = render_page(view, refresh_s=options.refresh_s)
    else:
        text = rendered(view, options.format, None if options.output is not None else table_columns())
    if options.output is not None:
        write_output(options.output, text.encode())
    else:
        print_text(text)


def _refresh_s(text: str) -> int:
    asked_s = seconds(text)
    if not _LEAST_REFRESH_S <= asked_s <= _MOST_REFRESH_S:
        raise argparse.ArgumentTypeError("from 5s to 1d")
    return round(asked_s)
