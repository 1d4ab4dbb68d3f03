"""Columns of names beside columns of figures: whole where there is room, else cut so that the table fits. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wcwidth import wcswidth

from gua.report.cells import fit
from gua.text import shown
from gua_fleet.short_names import short_names

# A name cut shorter than this says nothing.
_LEAST = 12
_GAP = 2


def fitted(text: str, width: int | None) -> str:
    """The text in `width` columns; None: whole."""
    return text if width is None else fit(text, width)


def rooms(
    names: Sequence[Sequence[str]], figures: Sequence[Sequence[str]], columns: int | None
) -> tuple[int | None, ...]:
    """The widths for columns of names beside columns of figures, each with its header, in a table of `columns`.

    Names are whole as long as that is possible with single blanks between the columns; else the widest give way.
    """
    widths = [max(map(wcswidth, column)) for column in names]
    if columns is None:
        return (None,) * len(widths)
    gaps = len(names) + len(figures) - 1
    room = columns - sum(max(map(wcswidth, column)) for column in figures) - _GAP * gaps
    if sum(widths) > room + gaps:
        while sum(widths) > room and max(widths) > _LEAST:
            widths[widths.index(max(widths))] -= 1
    return tuple(widths)


def beside(
    names: Sequence[str], headers: Sequence[str], figures: Sequence[Sequence[str]], columns: int | None
) -> tuple[tuple[str, ...], ...]:
    """Rows of a name and its figures, names cut where the table would be wider than `columns`."""
    (width,) = rooms([[headers[0], *names]], list(zip(headers[1:], *figures, strict=True)), columns)
    return tuple((fitted(name, width), *cells) for name, cells in zip(names, figures, strict=True))


def beside_short(
    names: Sequence[str], headers: Sequence[str], figures: Sequence[Sequence[str]], columns: int | None
) -> tuple[tuple[str, ...], ...]:
    """The same, for names that must not look alike when they are cut."""
    (width,) = rooms([[headers[0], *map(shown, names)]], list(zip(headers[1:], *figures, strict=True)), columns)
    short = short_names(names, width)
    return tuple((short[name], *cells) for name, cells in zip(names, figures, strict=True))
