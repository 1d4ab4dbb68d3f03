"""What one section of a report is, before any format lays it out: a title, tables of ready cells, sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Bar:
    """A cell that is drawn: seconds by state and `unobserved`."""

    amounts: Mapping[str, float]


Cell = Union[str, Bar]


@dataclass(frozen=True)
class Table:
    """align: one letter per column, l or r. Every row has as many cells as there are headers.

    elastic: columns of names, which a narrow place may cut. spare: columns that go first where it is still too narrow,
    in this order.
    """

    headers: tuple[str, ...]
    align: str
    rows: tuple[tuple[Cell, ...], ...]
    elastic: tuple[int, ...] = ()
    spare: tuple[int, ...] = ()


@dataclass(frozen=True)
class Section:
    """key: a word for anchors and tests. lines: statements, one each. basis: what the figures are computed from, and by
    which rule. heat: states whose hours of the week are drawn.
    """

    key: str
    title: str
    tables: tuple[Table, ...] = ()
    lines: tuple[str, ...] = ()
    basis: str = ""
    heat: tuple[str, ...] = ()
