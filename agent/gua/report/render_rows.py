"""Lays out ready cells as a table. Shared by the reports of both programs; the only module that knows tabulate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import DataRow, TableFormat, tabulate
from wcwidth import wcswidth

_ALIGN = {"l": "left", "r": "right"}


def table_lines(headers: Sequence[str], rows: Iterable[Sequence[str]], align: str, gap: str = "  ") -> list[str]:
    """Headers, a rule and one line for each row. align: one letter per column, l or r. gap: between two columns.

    Cells stay as they are: "007" is a name, not a number.
    """
    row = DataRow("", gap, "")
    plain = TableFormat(None, None, None, None, row, row, 0, None)
    text = tabulate(
        [headers, *rows], tablefmt=plain, disable_numparse=True, colalign=[_ALIGN[letter] for letter in align]
    )
    lines = [line.rstrip() for line in text.splitlines()]
    return [lines[0], "-" * max(map(wcswidth, lines)), *lines[1:]]
