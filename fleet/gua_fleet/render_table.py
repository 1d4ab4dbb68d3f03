"""The fleet report for people: the tables of `rows` and `rows_now`, laid out for a terminal or a mail."""

from __future__ import annotations

from collections.abc import Collection

from wcwidth import wcswidth

from gua.report.cells import Look
from gua.report.heat import heat_legend, heat_lines
from gua.report.notes import no_room_text, wrapped
from gua.report.render_rows import table_lines
from gua_fleet import rows, rows_now, rows_text
from gua_fleet.model import Document
from gua_fleet.rows import Table
from gua_fleet.rows_stored import reported

DEFAULT_WIDTH = 100
_MIN_WIDTH = 60
# Names are cut for no place narrower than this: there, columns go first.
_NAMES_WIDTH = 80

# The sections that `--by` picks from, in the order they are shown.
SECTIONS = ("model", "host", "user", "group")


def render_fleet(
    document: Document,
    *,
    width: int = DEFAULT_WIDTH,
    unicode: bool = True,
    colour: bool = False,
    by: Collection[str] = (),
    heat: str = "idle-held",
) -> str:
    """The whole fleet report as text, a newline at its end.

    width: columns to fit in, taken as at least 60; unicode: block characters, else ASCII. by: which of SECTIONS, and
    nothing else but the headline and who did not answer; empty: everything. heat: the state shown beside `active`.
    """
    look = Look(unicode=unicode, colour=colour)
    columns = max(width, _MIN_WIDTH)
    room = max(columns, _NAMES_WIDTH)
    parts = {
        "model": lambda: _table(rows.model_table(document, room), columns, look),
        "host": lambda: _table(rows.host_table(document, room), columns, look),
        "user": lambda: _users(document, columns, look),
        "group": lambda: _table(rows.group_table(document, room), columns, look),
    }
    picked = [parts[name]() for name in SECTIONS if not by or name in by]
    sections = [
        _title(document, columns, look),
        _headline(document, columns, look),
        *picked,
        *([] if by else _rest(document, columns, look, heat)),
        _lines("Hosts without a report", rows_text.silent_lines(document), columns, look),
        _lines("Hosts that judged by another rule", rows_text.apart_lines(document), columns, look),
        _lines("Findings", rows_text.finding_lines(document), columns, look),
    ]
    text = "\n\n".join("\n".join(section) for section in sections if section) + "\n"
    return text if unicode else text.encode("ascii", "replace").decode("ascii")


def _rest(document: Document, columns: int, look: Look, heat: str) -> list[list[str]]:
    """What is no sum by kind: energy, the week, and what is so now."""
    return [
        _energy(document, columns, look),
        _heat_map(document, columns, look, heat),
        _holds(document, columns, look),
        _free(document, columns, look),
    ]


def _title(document: Document, columns: int, look: Look) -> list[str]:
    answered = wrapped(rows_text.answered_text(document), columns, hanging="  ")
    doubt = rows_text.silent_hosts(document) or document["apart"]
    return [
        look.bold("GPU use of the fleet"),
        *wrapped(rows_text.period_text(document), columns),
        *(map(look.warn, answered) if doubt else answered),
        *wrapped(rows_now.free_text(document), columns, hanging="  "),
    ]


def _headline(document: Document, columns: int, look: Look) -> list[str]:
    basis = f"{rows_text.coverage_text(document)} {rows_text.STATES_BASIS}"
    first, *slices = rows.headline_tables(document)
    return [
        *_table(first, columns, look),
        *(line for table in slices for line in ["", *_table(table, columns, look)]),
        *wrapped(basis, columns),
        *(line for text in rows_text.rule_texts(document) for line in wrapped(text, columns)),
    ]


def _table(table: Table, columns: int, look: Look) -> list[str]:
    """Title, table and what was left out; nothing at all for a table without rows. Closer together where it must be."""
    if not table.rows:
        return []
    laid_out, gone = _fitted(table, columns)
    lines = [look.bold(table.title), *laid_out]
    lines += wrapped(no_room_text(gone), columns)
    if table.more:
        lines += wrapped(f"and {table.more} more; --format json, csv and html have all of them.", columns)
    return lines


def _fitted(table: Table, columns: int) -> tuple[list[str], list[str]]:
    """The table's lines, as narrow as they must be and can, and the headers of the columns that had to go."""
    gone = list[str]()
    while True:
        for gap in ("  ", " "):
            lines = table_lines(table.headers, table.rows, table.align, gap=gap)
            if max(map(wcswidth, lines)) <= columns:
                return lines, gone
        left = [header for header in table.spare if header in table.headers]
        if not left:
            return lines, gone
        gone.append(left[0])
        table = table.without(left[0])


def _users(document: Document, columns: int, look: Look) -> list[str]:
    lines = _table(rows.user_table(document, max(columns, _NAMES_WIDTH)), columns, look)
    return [*lines, *wrapped(rows_text.users_basis(document), columns)] if lines else []


def _energy(document: Document, columns: int, look: Look) -> list[str]:
    lines = _table(rows.energy_table(document, max(columns, _NAMES_WIDTH)), columns, look)
    return [*lines, *wrapped(rows_text.ENERGY_BASIS, columns)] if lines else []


def _heat_map(document: Document, columns: int, look: Look, heat: str) -> list[str]:
    if not document["hours_of_week"]:
        return []
    basis = f"Share of the known card time in each hour, {document['tz']}. {heat_legend(look)}"
    wanted = list(dict.fromkeys([heat, "active"]))
    return [
        look.bold("Hours of the week"),
        *heat_lines(document["hours_of_week"], wanted, look),
        *wrapped(basis, columns),
    ]


def _holds(document: Document, columns: int, look: Look) -> list[str]:
    lines = _table(rows_now.hold_table(document, max(columns, _NAMES_WIDTH)), columns, look)
    notes = [*rows_now.excuse_lines(document), *rows_now.not_measurable_lines(document)]
    return lines + _wrapped_all(notes, columns)


def _free(document: Document, columns: int, look: Look) -> list[str]:
    if any(host["from_store"] for host in document["hosts"]) and not any(map(reported, document["hosts"])):
        return []  # the store knows of no card what it does now
    table = _table(rows_now.free_table(document, max(columns, _NAMES_WIDTH)), columns, look) or [
        look.bold("Free now"),
        *wrapped(rows_now.free_text(document), columns, hanging="  "),  # it may not be known
    ]
    return [*table, *wrapped(rows_text.FREE_BASIS, columns), *_wrapped_all(rows_now.scheduler_lines(document), columns)]


def _lines(title: str, texts: list[str], columns: int, look: Look) -> list[str]:
    lines = _wrapped_all(texts, columns)
    return [look.bold(title), *lines] if lines else []


def _wrapped_all(texts: list[str], columns: int) -> list[str]:
    return [line for text in texts for line in wrapped(text, columns, hanging="  ")]
