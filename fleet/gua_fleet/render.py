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
    cells, above = _cells(rows), list[list[str]]()
    if columns is not None:
        widths = _widths(headers, cells, columns)  # once, not for each row: a fleet has thousands
        cells = [line for row in cells for line in _broken(row, widths)]
        *above, headers = _broken(headers, widths)
    return "\n".join(table_lines(headers, cells, align or "l" * len(headers), gap=_GAP, above=above)) + "\n"


def is_too_wide(headers: Sequence[str], rows: Sequence[Sequence[Cell]], columns: int) -> bool:
    """Whether `table` has to break cells to stay within `columns`."""
    return _total(_needed(headers, _cells(rows))) > columns


def _cells(rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
    return [["-" if cell is None else one_line(str(cell), _TEXT_LIMIT) for cell in row] for row in rows]


def _needed(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(wcswidth, column)) for column in zip(headers, *cells, strict=True)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _widths(headers: Sequence[str], cells: Sequence[Sequence[str]], columns: int) -> list[int]:
    """The width of each column: what it needs, the widest ones less until the table fits."""
    widths = _needed(headers, cells)
    if _total(widths) <= columns:
        return widths
    least = [min(_LEAST, max(map(_longest_word, column))) for column in zip(headers, *cells, strict=True)]
    while _total(widths) > columns:
        spare = [place for place, width in enumerate(widths) if width > least[place]]
        if not spare:
            break
        widths[max(spare, key=widths.__getitem__)] -= 1
    return widths


def _longest_word(cell: str) -> int:
    return max(map(wcswidth, cell.split()), default=0)


def _broken(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    parts = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    return [list(line) for line in zip_longest(*parts, fillvalue="")]


def _wrapped(cell: str, width: int) -> list[str]:
    """Lines of at most `width` columns; where letters take two, between any of them, as their languages do it."""
    if cell.isascii() or wcswidth(cell) == len(cell):
        return textwrap.wrap(cell, width, break_on_hyphens=False) or [""]
    lines = [""]
    for letter in cell:
        if wcswidth(lines[-1] + letter) > width:
            lines.append("")
        lines[-1] += letter
    return lines
