"""Lays out sections of the report's kind for a page of its own: text for a terminal, Markdown. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gua.report.cells import Look
from gua.report.notes import wrapped
from gua.report.render_md import escaped
from gua.report.render_rows import fitted_lines
from gua.report.section import Section, Table

MIN_WIDTH, MAX_WIDTH = 60, 200


@dataclass(frozen=True)
class Page:
    """title; notes: sentences under it; warnings: louder ones. Tables of these sections have no bars."""

    title: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]


def render_text(page: Page, *, width: int = 80, unicode: bool = True, colour: bool = False) -> str:
    """The page in columns; `width` is taken as 60 to 200. A newline at its end."""
    look, columns = Look(unicode=unicode, colour=colour), min(max(width, MIN_WIDTH), MAX_WIDTH)
    opening = [*map(look.bold, wrapped(page.title, columns))]
    for note in page.notes:
        opening += wrapped(note, columns)
    for warning in page.warnings:
        opening += map(look.warn, wrapped(warning, columns))
    blocks = [opening, *(_section(one, columns, look) for one in page.sections)]
    text = "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
    return text if unicode else text.encode("ascii", "replace").decode("ascii")


def render_md(page: Page) -> str:
    """The page as Markdown, every name escaped."""
    blocks = [f"# {escaped(page.title)}", *map(escaped, page.notes)]
    blocks += [f"**{escaped(warning)}**" for warning in page.warnings]
    for section in page.sections:
        blocks += [f"## {escaped(section.title)}"] if section.title else []
        blocks += [_md_table(table) for table in section.tables]
        blocks += ["\n".join(f"- {escaped(line)}" for line in section.lines)] if section.lines else []
        blocks += [escaped(section.basis)] if section.basis else []
    return "\n\n".join(blocks) + "\n"


def _section(section: Section, columns: int, look: Look) -> list[str]:
    lines = [look.bold(section.title)] if section.title else []
    for table in section.tables:
        lines += fitted_lines(table, columns, look)
    for line in section.lines:
        lines += wrapped(line, columns, hanging="  ")
    return lines + (wrapped(section.basis, columns) if section.basis else [])


def _md_table(table: Table) -> str:
    rule = ["---:" if letter == "r" else "---" for letter in table.align]
    rows: Sequence[Sequence[str]] = [[escaped(str(cell)) for cell in row] for row in (table.headers, *table.rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (rows[0], rule, *rows[1:]))
