"""Rows to text, for the small tables of `hosts`, `doctor` and `sync-once`. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from wcwidth import wcswidth

from gua.report.render_rows import table_lines
from gua_fleet.show import one_line

Cell = str | int | float | None

_GAP = "  "
# A reason ends in its cure, which must not be cut off; a host still cannot fill the screen.
_TEXT_LIMIT = 400
# Narrower than this, a column of sentences is a column of syllables.
_LEAST = 12


def table(headers: Sequence[str], rows: Sequence[Sequence[Cell]], columns: int | None = None, align: str = "") -> str:
    """A plain table, newline at the end. None prints `-`, zero prints `0`; control characters are escaped.

    align: one letter per column, l or r; empty: all to the left.

    columns: long cells go on in further lines so that the table is no wider, as far as that makes sense; None: one
    line for each row, for programs.
    """
    cells = [["-" if cell is None else one_line(str(cell), _TEXT_LIMIT) for cell in row] for row in rows]
    lines = (
        cells if columns is None else [line for row in cells for line in _broken(row, _widths(headers, cells, columns))]
    )
    return "\n".join(table_lines(headers, lines, align or "l" * len(headers), gap=_GAP)) + "\n"


def _widths(headers: Sequence[str], cells: Sequence[Sequence[str]], columns: int) -> list[int]:
    """The width of each column: what it needs, the widest ones less until the table fits."""
    widths = [max(map(wcswidth, column)) for column in zip(headers, *cells, strict=True)]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > columns and max(widths) > _LEAST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _broken(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    parts = [
        textwrap.wrap(cell, width, break_on_hyphens=False) or [""] for cell, width in zip(row, widths, strict=True)
    ]
    return [list(line) for line in zip_longest(*parts, fillvalue="")]
