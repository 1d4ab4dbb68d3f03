"""Lays out ready cells as a table. Shared by the reports of both programs; the only module that knows tabulate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import SEPARATING_LINE, DataRow, Line, TableFormat, tabulate

from gua.report.cells import Look
from gua.report.layout import FittedTable, fit_table
from gua.report.notes import no_room_text, wrapped
from gua.report.section import Table

_ALIGN = {"l": "left", "r": "right"}
# Stands in for blanks at the ends of a cell, which tabulate would strip: in a bar they are time that was not seen.
_BLANK = "\ue000"


def table_lines(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    align: str,
    gap: str = "  ",
    above: Sequence[Sequence[str]] = (),
) -> list[str]:
    """Headers, a rule and one line for each row. align: one letter per column, l or r. gap: between two columns.

    above: the first lines of headers that take several; `headers` is the last.
    Cells stay as they are: "007" is a name, not a number. Terminal colours take no room.
    """
    row = DataRow("", gap, "")
    rule = Line("", "-", "-" * len(gap), "")
    # The headers are a row like any other: as headers they would get room to spare.
    text = tabulate(
        [*above, headers, SEPARATING_LINE, *(map(_kept, cells) for cells in rows)],
        tablefmt=TableFormat(None, rule, None, None, row, row, 0, None),
        disable_numparse=True,
        colalign=[_ALIGN[letter] for letter in align],
    )
    return [line.replace(_BLANK, " ").rstrip() for line in text.splitlines()]


def fitted_lines(table: Table, columns: int, look: Look) -> list[str]:
    """The lines of a table made to fit `columns` terminal columns, see `layout.fit_table`, and what had no room."""
    return lines_of(fit_table(table, columns, look), columns)


def lines_of(fitted: FittedTable, columns: int) -> list[str]:
    """The same for one that was made to fit."""
    return [*table_lines(fitted.headers, fitted.rows, fitted.align), *wrapped(no_room_text(fitted.gone), columns)]


def _kept(cell: str) -> str:
    return cell if cell == cell.strip() else cell.replace(" ", _BLANK)
