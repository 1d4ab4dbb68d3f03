"""The agent's report as text for terminals, files and mails. Pure; text in, nothing written."""

from __future__ import annotations

from gua.report.cells import Look, bar_legend
from gua.report.document import Report
from gua.report.heat import heat_legend, heat_lines
from gua.report.layout import fit_table
from gua.report.notes import wrapped
from gua.report.render_rows import lines_of
from gua.report.section import Section
from gua.report.sections import has_history, nothing_text, opening_of, sections_of

# Narrower, sentences turn into columns of words; wider, an eye loses its line.
MIN_WIDTH, MAX_WIDTH = 60, 200
# Two heat maps side by side need this.
_TWO_MAPS = 57


def render_report(
    report: Report,
    *,
    width: int = 80,
    unicode: bool = True,
    colour: bool = False,
    heat: tuple[str, ...] = ("idle-held", "active"),
) -> str:
    """The whole report as text, a newline at its end.

    width: columns to use, taken as 60 to 200. unicode: block characters, else ASCII. colour: terminal sequences.
    heat: states whose hours of the week are drawn.
    """
    look = Look(unicode=unicode, colour=colour)
    columns = min(max(width, MIN_WIDTH), MAX_WIDTH)
    blocks = [_opening(report, columns, look)]
    blocks += [] if has_history(report) else [wrapped(nothing_text(report), columns)]
    sections = sections_of(report, heat)
    blocks += [_section(number, one, report, columns, look) for number, one in enumerate(sections, 1)]
    text = "\n\n".join("\n".join(block) for block in blocks) + "\n"
    return text if unicode else text.encode("ascii", "replace").decode("ascii")


def _opening(report: Report, columns: int, look: Look) -> list[str]:
    opening = opening_of(report)
    lines = [*map(look.bold, wrapped(opening.title, columns)), *wrapped(opening.period, columns)]
    for note in opening.notes:
        lines += wrapped(note, columns)
    for warning in opening.warnings:
        lines += map(look.warn, wrapped(warning, columns))
    return lines


def _section(number: int, section: Section, report: Report, columns: int, look: Look) -> list[str]:
    lines = [look.bold(f"{number}. {section.title}")]
    tables = [fit_table(table, columns, look) for table in section.tables]
    for table in tables:
        lines += lines_of(table, columns)
    if section.heat:
        lines += _heat(section.heat, report, columns, look)
    for line in section.lines:
        lines += wrapped(line, columns, hanging="  ")
    has_bar = any(table.has_bar for table in tables)
    return lines + wrapped(_with_legend(section, look, has_bar=has_bar), columns)


def _with_legend(section: Section, look: Look, *, has_bar: bool) -> str:
    """The basis, with what the marks of its pictures mean."""
    legends = [bar_legend(look)] if has_bar else []
    legends += [heat_legend(look)] if section.heat else []
    return " ".join([section.basis, *legends])


def _heat(states: tuple[str, ...], report: Report, columns: int, look: Look) -> list[str]:
    together = len(states) if columns >= _TWO_MAPS else 1
    lines: list[str] = []
    for first in range(0, len(states), together):
        lines += heat_lines(report["hours_of_week"], states[first : first + together], look)
    return lines
