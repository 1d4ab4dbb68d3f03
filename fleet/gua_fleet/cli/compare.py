"""What `gua-fleet report --compare` writes, in the form and to the place that the options of the report say."""

from __future__ import annotations

import argparse
import sys

from gua.clock import SystemClock
from gua_fleet.anonymous import compare_without_names
from gua_fleet.cli.common import print_text, table_columns
from gua_fleet.cli.view import write_output
from gua_fleet.compare import compare_reports
from gua_fleet.model import Document
from gua_fleet.view import rendered
from gua_fleet.view_compare import compare_view, windows_text


def show_compared(this: Document, before: Document, options: argparse.Namespace) -> None:
    """Compare two merged reports and write it; `--no-names`, `--by`, `--width`, `--format`, `-o` as in a report."""
    document = compare_reports(this, before, generated_at_ms=SystemClock().now_ms())
    text = compared_text(compare_without_names(document) if options.names is False else document, options)
    if options.output is not None:
        write_output(options.output, text.encode())
    elif options.format == "table":
        print_text(text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())


def compared_text(document: Document, options: argparse.Namespace) -> str:
    """A `gua.fleet-compare/1` in the form that the options choose."""
    whole = options.format not in ("table", "md")
    view = compare_view(document, options.by, **({"top": None} if whole else {}))
    if options.format == "html":
        from gua_fleet.view_html import render_still  # only where it is asked for

        return render_still(f"GPU use, {windows_text(document)}", view)
    columns = table_columns() if options.output is None else None
    return rendered(view, options.format, options.width or columns)
