"""The fleet report as Markdown, for a wiki or an issue. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from gua_fleet import rows, rows_now, rows_text
from gua_fleet.model import Document
from gua_fleet.render import Cell
from gua_fleet.render_table import SECTIONS
from gua_fleet.rows import Table
from gua_fleet.show import one_line

_MEANS_SOMETHING = re.compile(r"([\\`*_{}\[\]<>#|~])")


def render_md(document: Document, by: Collection[str] = ()) -> str:
    """Headings, sentences and pipe tables, a newline at the end. by: as for `render_fleet`."""
    tables = {
        "model": lambda: rows.model_table(document, None),
        "host": lambda: rows.host_table(document, None),
        "user": lambda: rows.user_table(document, None),
        "group": lambda: rows.group_table(document, None),
    }
    rest = [rows.energy_table(document, None), rows_now.hold_table(document, None), rows_now.free_table(document, None)]
    notes = [*rows_now.excuse_lines(document), *rows_now.not_measurable_lines(document)]
    parts = [
        f"# GPU use of the fleet\n\n{_text(rows_text.period_text(document))}",
        _text(rows_text.answered_text(document)),
        _text(rows_now.free_text(document)),
        *(_table(table) for table in rows.headline_tables(document)),
        _text(f"{rows_text.coverage_text(document)} {rows_text.STATES_BASIS}"),
        *map(_text, rows_text.rule_texts(document)),
        *(_section(tables[name](), document) for name in SECTIONS if not by or name in by),
        *([] if by else [*map(_table, rest), *map(_text, notes), *map(_text, rows_now.scheduler_lines(document))]),
        _list("Hosts without a report", rows_text.silent_lines(document)),
        _list("Hosts that judged by another rule", rows_text.apart_lines(document)),
        _list("Findings", rows_text.finding_lines(document)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(table: Table, document: Document) -> str:
    text = _table(table)
    return f"{text}\n\n{_text(rows_text.users_basis(document))}" if text and table.title == "By user" else text


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    marks = {"l": ":--", "r": "--:"}
    lines = [_row(table.headers), "|".join(["", *(marks[letter] for letter in table.align), ""])]
    more = f"\n\nand {table.more} more" if table.more else ""
    return f"## {_text(table.title)}\n\n" + "\n".join([*lines, *map(_row, table.rows)]) + more


def _row(cells: Collection[str]) -> str:
    return f"| {' | '.join(map(_text, cells))} |"


def _list(title: str, lines: list[str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {_text(line)}" for line in lines) if lines else ""


def _text(text: str) -> str:
    """Text that stays text: a user may be called `<script>` or `a|b`."""
    return _MEANS_SOMETHING.sub(r"\\\1", text).replace("\N{NO-BREAK SPACE}", " ")


def md_line(text: str) -> str:
    """A sentence on one line, nothing in it meaning anything to Markdown."""
    return _text(one_line(text, 1000))


def md_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A pipe table under its title (none: ""). None prints `-`."""
    cells = [tuple("-" if cell is None else one_line(str(cell), 400) for cell in row) for row in rows]
    lines = [_row(tuple(headers)), "|".join(["", *(":--" for _ in headers), ""]), *map(_row, cells)]
    return (f"## {_text(title)}\n\n" if title else "") + "\n".join(lines)
