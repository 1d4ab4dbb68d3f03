"""The fleet report for people: the tables of `rows`, laid out."""

from __future__ import annotations

from wcwidth import wcswidth

from gua.report.cells import Look, clock_time
from gua.report.heat import heat_legend, heat_lines
from gua.report.notes import rule_lines, wrapped
from gua.report.render_rows import table_lines
from gua.report.zones import find_zone
from gua.text import shown
from gua_fleet import rows
from gua_fleet.model import Document
from gua_fleet.rows import Table

DEFAULT_WIDTH = 100
_MIN_WIDTH = 80
# Text of findings and reasons may be long; a host cannot fill the screen with them.
_TEXT_LIMIT = 400


def render_fleet(document: Document, *, width: int = DEFAULT_WIDTH, unicode: bool = True, colour: bool = False) -> str:
    """The whole fleet report as text, a newline at its end.

    width: columns to fit in, taken as at least 80; unicode: block characters, else ASCII.
    """
    look = Look(unicode=unicode, colour=colour)
    columns = max(width, _MIN_WIDTH)
    sections = [
        _title(document, columns, look),
        _headline(document, columns, look),
        _table(rows.model_table(document, columns), columns, look),
        _table(rows.host_table(document, columns), columns, look),
        _users(document, columns, look),
        _table(rows.group_table(document, columns), columns, look),
        _heat_map(document, columns, look),
        _free(document, columns, look),
        _silent(document, columns, look),
        _findings(document, columns, look),
    ]
    text = "\n\n".join("\n".join(section) for section in sections if section) + "\n"
    return text if unicode else text.encode("ascii", "replace").decode("ascii")


def _title(document: Document, columns: int, look: Look) -> list[str]:
    window, zone = document["window"], find_zone(document["tz"])
    since, until = clock_time(window["since"], zone), clock_time(window["until"], zone)
    name = document["tz"] if zone is not None else "UTC"
    answered = wrapped(rows.answered_text(document), columns, hanging="  ")
    return [
        look.bold("GPU use of the fleet"),
        f"{since} to {until} ({name})",
        *(map(look.warn, answered) if rows.silent_hosts(document) else answered),
    ]


def _headline(document: Document, columns: int, look: Look) -> list[str]:
    basis = (
        f"{rows.coverage_text(document)} Shares are of the known time; bounds count everything unknown or not seen "
        "for or against a state. Equivalent cards: the share times the cards of the hosts that reported."
    )
    return [
        *_table(rows.headline_table(document), columns, look),
        *wrapped(basis, columns),
        *rule_lines(document["rules"], columns),
    ]


def _table(table: Table, columns: int, look: Look) -> list[str]:
    """Title, table and what was left out; nothing at all for a table without rows. Closer together where it must be."""
    if not table.rows:
        return []
    laid_out = table_lines(table.headers, table.rows, table.align)
    if max(map(wcswidth, laid_out)) > columns:
        laid_out = table_lines(table.headers, table.rows, table.align, gap=" ")
    lines = [look.bold(table.title), *laid_out]
    return [*lines, f"and {table.more} more; the JSON document has all of them."] if table.more else lines


def _users(document: Document, columns: int, look: Look) -> list[str]:
    lines = _table(rows.user_table(document, columns), columns, look)
    minutes = " or ".join(sorted({str(rule["long_idle_s"] // 60) for rule in document["rules"]}))
    basis = (
        "GPU-hours count the whole card for each of its users, so they can add up to more than card time; share "
        f"hours divide it among them. Long: idle-held without a break for {minutes} minutes or more. "
        "A name with @HOST means something on that host only."
    )
    return [*lines, *wrapped(basis, columns)] if lines else []


def _heat_map(document: Document, columns: int, look: Look) -> list[str]:
    if not document["hours_of_week"]:
        return []
    basis = f"Share of the known card time in each hour, {document['tz']}. {heat_legend(look)}"
    lines = heat_lines(document["hours_of_week"], ["idle-held", "active"], look)
    return [look.bold("Hours of the week"), *lines, *wrapped(basis, columns)]


def _free(document: Document, columns: int, look: Look) -> list[str]:
    table = _table(rows.free_table(document, columns), columns, look) or [look.bold("Free now"), "No card."]
    basis = "Truly-idle by each host's newest sample, not older than three intervals, and not a scheduler's."
    return [*table, *wrapped(basis, columns), *rows.scheduler_lines(document)]


def _silent(document: Document, columns: int, look: Look) -> list[str]:
    lines = []
    for host in rows.silent_hosts(document):
        reason = shown(host["detail"] or "no reason given", _TEXT_LIMIT)
        lines += wrapped(f"{shown(host['name'])}: {shown(host['outcome'])}: {reason}", columns, hanging="  ")
    return [look.bold("Hosts without a report"), *lines] if lines else []


def _findings(document: Document, columns: int, look: Look) -> list[str]:
    lines = []
    for finding in document["findings"]:
        where = f" {shown(finding['host'])}:" if finding["host"] else ""
        text = f"{shown(finding['severity'])}:{where} {shown(finding['text'], _TEXT_LIMIT)}"
        lines += wrapped(text, columns, hanging="  ")
    return [look.bold("Findings"), *lines] if lines else []
