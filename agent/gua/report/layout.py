"""Makes a table fit a number of columns: bars grow or shrink, names are cut, spare columns go. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gua.report.cells import Look, display_width, fit, painted_bar
from gua.report.section import Bar, Cell, Table

GAP = 2
_LEAST_BAR, _FAIR_BAR, _MOST_BAR = 8, 14, 32
# A name cut shorter than this tells nobody from anybody.
_LEAST_NAME = 8


@dataclass(frozen=True)
class FittedTable:
    """A table whose cells are text, bars drawn. align: one letter per column, l or r. gone: headers without room.

    has_bar: whether one is drawn.
    """

    headers: tuple[str, ...]
    align: str
    rows: tuple[tuple[str, ...], ...]
    gone: tuple[str, ...] = ()
    has_bar: bool = False


def fit_table(table: Table, columns: int, look: Look) -> FittedTable:
    """The table in at most `columns` terminal columns, as far as cutting names and dropping spare columns can do it."""
    kept = list(range(len(table.headers)))
    for gone in table.spare:
        if _total(_least(table, place) for place in kept) <= columns:
            break
        kept.remove(gone)
    widths = {place: _least(table, place) for place in kept}
    room = columns - _total(widths.values())
    for place, wanted in _wishes(table, kept):
        given = max(0, min(room, wanted - widths[place]))
        widths[place], room = widths[place] + given, room - given
    return FittedTable(
        headers=tuple(table.headers[place] for place in kept),
        align="".join(table.align[place] for place in kept),
        rows=tuple(tuple(_drawn(row[place], widths[place], look) for place in kept) for row in table.rows),
        has_bar=any(_is_bar(table, place) for place in kept),
        gone=tuple(table.headers[place] for place in table.spare if place not in kept),
    )


def _wishes(table: Table, kept: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(column, width) in the order they are granted: a bar that can be read, whole names, then a longer bar."""
    bars = [place for place in kept if _is_bar(table, place)]
    yield from ((place, _FAIR_BAR) for place in bars)
    yield from ((place, _natural(table, place)) for place in kept if place not in bars)
    yield from ((place, _MOST_BAR) for place in bars)


def _drawn(cell: Cell, width: int, look: Look) -> str:
    return fit(cell, width) if isinstance(cell, str) else painted_bar(cell.amounts, width, look)


def _is_bar(table: Table, place: int) -> bool:
    return any(isinstance(row[place], Bar) for row in table.rows)


def _least(table: Table, place: int) -> int:
    if _is_bar(table, place):
        return _LEAST_BAR
    natural = _natural(table, place)
    return min(natural, max(_LEAST_NAME, display_width(table.headers[place]))) if place in table.elastic else natural


def _natural(table: Table, place: int) -> int:
    cells = [row[place] for row in table.rows]
    return max(display_width(cell) for cell in [table.headers[place], *cells] if isinstance(cell, str))


def _total(widths: Iterable[int]) -> int:
    parts = list(widths)
    return sum(parts) + GAP * (len(parts) - 1)
