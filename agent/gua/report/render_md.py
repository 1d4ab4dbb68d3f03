"""The report as Markdown, for tickets, wikis and chats. Pure.

Names come from workloads, so everything is escaped: no cell can begin a column, a link or a tag.
"""

from __future__ import annotations

import re

from gua.report.cells import Look, bar, bar_legend
from gua.report.document import Report
from gua.report.heat import heat_legend, heat_lines
from gua.report.notes import NO_BREAK
from gua.report.section import Bar, Section, Table
from gua.report.sections import has_history, nothing_text, opening_of, sections_of

_LOOK = Look(unicode=True)
_BAR_WIDTH = 20
# Every character that begins something within a line of Markdown or HTML.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<|~@&$])")


def render_md(report: Report, *, heat: tuple[str, ...] = ("idle-held", "active")) -> str:
    """The whole report, a newline at its end. heat: states whose hours of the week are drawn."""
    opening = opening_of(report)
    blocks = [f"# {escaped(opening.title)}", escaped(opening.period), *map(escaped, opening.notes)]
    blocks += [f"**{escaped(warning)}**" for warning in opening.warnings]
    blocks += [] if has_history(report) else [escaped(nothing_text(report))]
    for number, section in enumerate(sections_of(report, heat), 1):
        blocks += _section(number, section, report)
    return "\n\n".join(blocks) + "\n"


def escaped(text: str) -> str:
    """Text that shows as itself, in a table too."""
    return _SPECIAL.sub(r"\\\1", text).replace(NO_BREAK, " ")


def _section(number: int, section: Section, report: Report) -> list[str]:
    blocks = [f"## {number}. {escaped(section.title)}", *map(_table, section.tables)]
    if section.heat:
        blocks.append("\n".join(["```text", *heat_lines(report["hours_of_week"], section.heat, _LOOK), "```"]))
    if section.lines:
        blocks.append("\n".join(f"- {escaped(line)}" for line in section.lines))
    legends = [bar_legend(_LOOK)] if section.key == "cards" and section.tables else []
    legends += [heat_legend(_LOOK)] if section.heat else []
    basis = " ".join([section.basis, *legends]).strip()
    return [*blocks, escaped(basis)] if basis else blocks


def _table(table: Table) -> str:
    rule = ["---:" if letter == "r" else "---" for letter in table.align]
    rows = [
        [_drawn(cell) if isinstance(cell, Bar) else escaped(cell) for cell in row]
        for row in (table.headers, *table.rows)
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (rows[0], rule, *rows[1:]))


def _drawn(cell: Bar) -> str:
    """A bar; trailing blanks would vanish, so what was not seen is drawn as a dot here."""
    return bar(cell.amounts, _BAR_WIDTH, _LOOK).replace(" ", "·")
