"""The fleet report as one HTML file: a first page for those who decide, the details after it. Pure.

It loads nothing from anywhere; pictures are drawn in it. Every text is escaped: users and processes choose their names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from gua.model import State
from gua.report.cells import hours, percent
from gua.shares import format_share, share
from gua_fleet import rows, rows_now, rows_text
from gua_fleet.model import Document
from gua_fleet.render_html_page import page
from gua_fleet.render_svg import KINDS, heat_map, split_bar
from gua_fleet.render_table import SECTIONS
from gua_fleet.rows import Table

_WORDS = {
    State.ACTIVE: ("active", "working"),
    State.IDLE_HELD: ("idle-held", "held without work"),
    State.TRULY_IDLE: ("truly-idle", "free"),
}


def render_html(document: Document, *, by: Collection[str] = (), heat: str = "idle-held") -> str:
    """The whole page. by: which of the sections by model, host, user and group; empty: all, and the details."""
    first = [_title(document), _silence_box(document), _figures(document), _free(document), _models(document, by)]
    whole = _table(rows.headline_tables(document)[0], rows_text.CARDS_BASIS)
    details = [whole, *_sections(document, by), *([] if by else _rest(document, heat)), *_told(document)]
    body = "\n".join([*filter(None, first), '<div class="details">', *filter(None, details), "</div>"])
    return page(f"GPU use, {rows_text.period_text(document)}", body)


def _title(document: Document) -> str:
    return f"<h1>GPU use of the fleet</h1>\n{_text(rows_text.period_text(document))}"


def _silence_box(document: Document) -> str:
    doubt = rows_text.silent_hosts(document) or document["apart"]
    return f'<p class="{"warn" if doubt else "soft"}">{_safe(rows_text.answered_text(document))}</p>'


def _figures(document: Document) -> str:
    """The headline: three shares with their bounds, how much was seen, and one bar of all expected time."""
    states, expected = rows.headline_time(document)
    boxes, unit = [], rows.headline_unit(document)
    for state, (kind, words) in _WORDS.items():
        point, _, bounds = format_share(share(states, state, expected)).partition(" (")
        boxes.append(_figure(kind, point, words, f"{hours(states[state.value])} {unit}", bounds.removesuffix(")")))
    seen = sum(states.values())
    boxes.append(_figure("unknown", percent(seen, expected), "seen", f"of {hours(expected)} expected {unit}"))
    bar = split_bar(rows.split(states, expected), 30)
    drawn = "" if bar == "-" else f'<div class="big">{bar}</div>'
    slices = map(_table, rows.headline_tables(document)[1:])
    basis = f"{rows_text.coverage_text(document)} {rows_text.SHARES_BASIS}"
    return "\n".join([f'<div class="figures">{"".join(boxes)}</div>', drawn, _legend(), *slices, _soft(basis)])


def _figure(kind: str, figure: str, words: str, *about: str) -> str:
    notes = ", ".join(f'<span class="whole">{_safe(text)}</span>' for text in about if text)
    return f'<div class="figure {kind}"><b>{_safe(figure)}</b>{_safe(words)}<br><span class="soft">{notes}</span></div>'


def _legend() -> str:
    marks = "".join(f'<span><i style="background:var(--{kind})"></i>{_named(kind)}</span>' for kind in KINDS)
    return f'<p class="legend soft">{marks}</p>'


def _named(kind: str) -> str:
    return {"unobserved": "not seen"}.get(kind, kind)


def _free(document: Document) -> str:
    notes = [*rows_now.scheduler_lines(document)]
    return "\n".join([f'<p class="free">{_safe(rows_now.free_text(document))}</p>', *map(_soft, notes)])


def _models(document: Document, by: Collection[str]) -> str:
    return _table(rows.model_table(document, None)) if not by or "model" in by else ""


def _sections(document: Document, by: Collection[str]) -> list[str]:
    parts = {
        "host": lambda: _table(rows.host_table(document, None)),
        "user": lambda: _table(rows.user_table(document, None, top=None), rows_text.users_basis(document)),
        "group": lambda: _table(rows.group_table(document, None)),
    }
    return [parts[name]() for name in SECTIONS if name in parts and (not by or name in by)]


def _rest(document: Document, heat: str) -> list[str]:
    notes = " ".join([*rows_now.excuse_lines(document), *rows_now.not_measurable_lines(document)])
    return [
        _table(rows.energy_table(document, None), rows_text.ENERGY_BASIS),
        _heat(document, heat),
        _table(rows_now.hold_table(document, None, top=None), notes),
        _table(rows_now.free_table(document, None), rows_text.FREE_BASIS),
    ]


def _heat(document: Document, heat: str) -> str:
    if not document["hours_of_week"]:
        return ""
    maps = [
        f"<div>{_text(state)}{heat_map(document['hours_of_week'], state)}</div>"
        for state in dict.fromkeys([heat, "active"])
    ]
    basis = f"Share of the known card time in each hour, {document['tz']}; a square that is not there: nothing known."
    return f'<h2>Hours of the week</h2>\n<div class="heats">{"".join(maps)}</div>\n{_soft(basis)}'


def _told(document: Document) -> list[str]:
    return [
        _list("Hosts without a report", rows_text.silent_lines(document)),
        _list("Hosts that judged by another rule", rows_text.apart_lines(document)),
        _list("Findings", rows_text.finding_lines(document)),
        "\n".join(map(_text, rows_text.rule_texts(document))),
    ]


def _table(table: Table, basis: str = "") -> str:
    """A heading, the table with its bars, and how to read it; nothing for a table without rows."""
    if not table.rows:
        return ""
    bar_head = ["<th></th>"] if table.bars else []
    heads = [f"<th{_side(letter)}>{_safe(text)}</th>" for text, letter in zip(table.headers, table.align, strict=True)]
    heads[1:1] = bar_head
    bars = table.bars or (None,) * len(table.rows)
    lines = [
        _row(row, table.align, split_bar(bar) if table.bars else None)
        for row, bar in zip(table.rows, bars, strict=True)
    ]
    return (
        f'<h2>{_safe(table.title)}</h2>\n<div class="wide"><table class="sortable"><thead><tr>{"".join(heads)}</tr>'
        f"</thead>\n<tbody>\n{chr(10).join(lines)}\n</tbody></table></div>{_soft(basis) if basis else ''}"
    )


def _row(cells: Sequence[str], align: str, bar: str | None) -> str:
    parts = [f"<td{_side(letter)}>{_safe(cell)}</td>" for cell, letter in zip(cells, align, strict=True)]
    parts[1:1] = [] if bar is None else [f'<td class="bar">{bar}</td>']
    return f"<tr>{''.join(parts)}</tr>"


def _side(letter: str) -> str:
    return ' class="r"' if letter == "r" else ""


def _list(title: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{_safe(line)}</li>" for line in lines)
    return f"<h2>{_safe(title)}</h2>\n<ul>{items}</ul>" if lines else ""


def _text(text: str) -> str:
    return f"<p>{_safe(text)}</p>"


def _soft(text: str) -> str:
    return f'<p class="soft">{_safe(text)}</p>'


def _safe(text: str) -> str:
    """Text that stays text, its figures in one piece."""
    return escape(text).replace(" %", "&nbsp;%")
