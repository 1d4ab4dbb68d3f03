"""Rows to text, for the small tables of `hosts`, `doctor` and `sync-once`."""

from __future__ import annotations

from collections.abc import Sequence

from gua_fleet.show import one_line

Cell = str | int | float | None


def table(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A plain table, newline at the end. None prints `-`, zero prints `0`; control characters are escaped."""
    from tabulate import tabulate  # only commands that print tables need it

    cells = [["-" if cell is None else one_line(str(cell)) for cell in row] for row in rows]
    # numbers were formatted above: the library must not read `1e5` or `007` as one
    return tabulate(cells, headers=list(headers), tablefmt="simple", disable_numparse=True) + "\n"
