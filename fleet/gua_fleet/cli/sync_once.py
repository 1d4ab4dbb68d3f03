"""`gua-fleet sync-once`: every host sampled now, and the fleet as it is."""

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
from gua_fleet.probes.sync_once import SYNC_ONCE_PROBE
from gua_fleet.render import table
from gua_fleet.show import one_line
from gua_fleet.view_rows import CARD_HEADERS, SILENT_HEADERS, card_rows, has_sampled, silent_rows, sync_notes


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: which hosts, how to ask, which form."""
    add_fleet_options(parser)
    add_format_option(parser, "table")


def run(options: argparse.Namespace) -> int:
    """Print the cards of all hosts now. Exit status 1 when a host did not answer or sample, 3 when none answered."""
    results = ask_fleet(options, SYNC_ONCE_PROBE).results
    if options.format == "json":
        emit_document(fleet_document("gua.fleet-sync-once/1", results), None)
    else:
        _show(results)
    return int(exit_status(results, options.allow_missing, sound=has_sampled))


def _show(results: Sequence[HostResult]) -> None:
    tables = ((CARD_HEADERS, card_rows(results)), (SILENT_HEADERS, silent_rows(results)))
    parts = [table(headers, rows, table_columns()) for headers, rows in tables if rows]
    notes = "".join(f"{one_line(note)}\n" for note in sync_notes(results))
    print_text("\n".join([*parts, notes] if notes else parts))
