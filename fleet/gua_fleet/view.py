"""What a small command has to show, in every form that it can be shown in. Pure."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gua_fleet.render import Cell, table
from gua_fleet.render_csv import csv_cell
from gua_fleet.render_md import md_line, md_table
from gua_fleet.show import one_line

_LINE_LIMIT = 1000


@dataclass(frozen=True)
class Section:
    """A table with its title; title "" where it needs none. A section without rows is not shown."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    align: str = ""


@dataclass(frozen=True)
class View:
    """document: for programs. lines: sentences that stand above the sections. notes: below them. flat: one row of plain
    amounts for each thing shown, for spreadsheets; all rows have the keys of `columns`.
    """

    document: Mapping[str, Any]
    lines: Sequence[str] = ()
    sections: Sequence[Section] = ()
    notes: Sequence[str] = ()
    columns: Sequence[str] = ()
    flat: Sequence[Mapping[str, Any]] = field(default=())


def rendered(view: View, form: str, columns: int | None) -> str:
    """The view as `table`, `md`, `csv` or `json`, a newline at its end. columns: of the screen; None: no limit."""
    if form == "json":
        return json.dumps(view.document, indent=1, allow_nan=False) + "\n"
    if form == "csv":
        return _csv(view)
    if form == "md":
        return _md(view)
    parts = [_sentences(view.lines, columns)] if view.lines else []
    for section in view.sections:
        if section.rows:
            title = f"{section.title}\n" if section.title else ""
            parts.append(title + table(section.headers, section.rows, columns, section.align))
    if view.notes:
        parts.append(_sentences(view.notes, columns))
    return "\n".join(parts)


def _sentences(lines: Sequence[str], columns: int | None) -> str:
    if columns is None:
        return "".join(f"{one_line(line, _LINE_LIMIT)}\n" for line in lines)
    return "".join(
        textwrap.fill(
            one_line(line, _LINE_LIMIT), columns, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )
        + "\n"
        for line in lines
    )


def _md(view: View) -> str:
    parts = ["\n".join(f"- {md_line(line)}" for line in lines) for lines in (view.lines, view.notes) if lines]
    tables = [md_table(section.title, section.headers, section.rows) for section in view.sections if section.rows]
    head = parts[:1] if view.lines else []
    return "\n\n".join([*head, *tables, *(parts[1:] if view.lines else parts)]) + "\n"


def _csv(view: View) -> str:
    """One header and one row for each thing. Empty: not known; 0: none."""
    out = io.StringIO()
    writer = csv.DictWriter(out, view.columns, lineterminator="\n", restval="", extrasaction="ignore")
    writer.writeheader()
    for row in view.flat:
        writer.writerow({key: csv_cell(value) for key, value in row.items()})
    return out.getvalue()
