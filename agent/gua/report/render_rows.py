"""Lays out ready cells as a table. Shared by the reports of both programs. Pure.

The library for it loads the tables of all wide characters and the metadata of all packages: a third of a small report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gua.report.cells import Look, display_width
from gua.report.layout import fit_table
from gua.report.section import Table

_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def table_lines(headers: Sequence[str], rows: Iterable[Sequence[str]], align: str, gap: str = "  ") -> list[str]:
    """Headers, a rule and one line for each row. align: one letter per column, l or r. gap: between two columns.

    Cells stay as they are: "007" is a name, not a number. Terminal colours take no room.
    """
    grid = [headers, *rows]
    room = [[_width(cell) for cell in row] for row in grid]
    columns = [max(widths) for widths in zip(*room)]
    first, *others = (
        gap.join(
            cell + blanks if side == "l" else blanks + cell
            for cell, side, blanks in zip(row, align, (" " * (most - width) for most, width in zip(columns, widths)))
        ).rstrip()
        for row, widths in zip(grid, room)
    )
    return [first, "-" * (sum(columns) + len(gap) * (len(columns) - 1)), *others]


def fitted_lines(table: Table, columns: int, look: Look) -> list[str]:
    """The lines of a table made to fit `columns` terminal columns, see `layout.fit_table`."""
    fitted = fit_table(table, columns, look)
    return table_lines(fitted.headers, fitted.rows, fitted.align)


def _width(cell: str) -> int:
    return display_width(_COLOUR.sub("", cell) if "\x1b" in cell else cell)
