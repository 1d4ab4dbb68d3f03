"""`gua-fleet doctor`: `gua doctor` on every host, equal findings told once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from gua.cli.output import add_format_option, emit_document
from gua_fleet.cli.common import (
    add_fleet_options,
    ask_fleet,
    exit_status,
    fleet_document,
    print_text,
    table_columns,
)
from gua_fleet.model import HostResult
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.render import table
from gua_fleet.view_rows import FINDING_HEADERS, SILENT_HEADERS, doctor_headline, finding_rows, is_ready, silent_rows


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: which hosts, how to ask, which form, how much."""
    add_fleet_options(parser)
    add_format_option(parser, "table")
    parser.add_argument("--verbose", action="store_true", help="show the checks that passed, too")


def run(options: argparse.Namespace) -> int:
    """Print the findings. Exit status 1 when a host is not ready or did not answer, 3 when none answered."""
    results = ask_fleet(options, DOCTOR_PROBE).results
    if options.format == "json":
        emit_document(fleet_document("gua.fleet-doctor/1", results), None)
    else:
        _show(results, verbose=options.verbose)
    return int(exit_status(results, options.allow_missing, sound=is_ready))


def _show(results: Sequence[HostResult], *, verbose: bool) -> None:
    print_text(doctor_headline(results) + "\n")
    for headers, rows in (
        (FINDING_HEADERS, finding_rows(results, verbose=verbose)),
        (SILENT_HEADERS, silent_rows(results)),
    ):
        if rows:
            print_text("\n" + table(headers, rows, table_columns()))
