"""The report as one HTML page to mail, print and keep: no script, no network, pictures drawn inline.

The first page is for who pays for the cards; the sections behind it are those of every other format. Pure, but for
reading the style sheet that lies beside this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from gua.model import State
from gua.report.cells import clock_time, count, equivalent_cards, hours, percent
from gua.report.document import Report
from gua.report.figures import card_name, known_s
from gua.report.notes import NO_BREAK
from gua.report.pictures import KIND_WORDS, heat_map, legend, split_bar, timeline_rows
from gua.report.section import Bar, Cell, Section, Table
from gua.report.sections import Opening, has_history, nothing_text, opening_of, sections_of
from gua.report.wording import zone_of
from gua.shares import format_share, share
from gua.text import shown
from gua.units import MS_PER_SECOND, parse_time_ms, to_iso

_STYLE = Path(__file__).with_name("page.css")
# The page may load nothing and run nothing, whatever a name on it says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_TILES = ((State.ACTIVE, "worked"), (State.IDLE_HELD, "held without work"), (State.TRULY_IDLE, "free"))


def render_html(report: Report, *, heat: tuple[str, ...] = ("idle-held", "active")) -> str:
    """The whole page. heat: states whose hours of the week are drawn."""
    opening = opening_of(report)
    body = [*_opening(opening)]
    if has_history(report):
        body += [*_first_page(report)]
    else:
        body.append(_paragraph(nothing_text(report)))
    body.append('<div class="details">')
    for number, section in enumerate(sections_of(report, heat), 1):
        body += _section(number, section, report)
    body += ["</div>", _footer(report)]
    return _page(opening.title, "\n".join(body))


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _opening(opening: Opening) -> Iterator[str]:
    yield f"<header><h1>{escape(opening.title)}</h1>"
    yield _paragraph(opening.period, "period")
    for warning in opening.warnings:
        yield _paragraph(warning, "warning")
    for note in opening.notes:
        yield _paragraph(note)
    yield "</header>"


def _first_page(report: Report) -> Iterator[str]:
    states, coverage = report["card_s"], report["coverage"]
    expected, unseen = coverage["expected_card_s"], coverage["unobserved_card_s"]
    yield _paragraph(summary_text(report), "summary")
    yield '<div class="tiles">'
    for state, words in _TILES:
        point, _, bounds = format_share(share(states, state, expected)).partition(" (")
        amount = f"{hours(states[state.value])} GPU-hours"
        yield _tile(state.value, words, point, amount, f"bounds {bounds[:-1]}" if bounds else "")
    dark = states["unknown"] + unseen
    yield _tile(
        "unobserved", "unknown or unseen", percent(dark, expected), f"{hours(dark)} GPU-hours", "of the expected"
    )
    yield f'</div>\n<div class="whole">{split_bar({**_amounts(report), "unobserved": unseen}, 600)}</div>'
    yield legend()
    for finding in report["findings"]:
        if finding["severity"] == "fail":
            yield _paragraph(shown(finding["text"], 600), "warning")
    yield from _timeline(report)


def summary_text(report: Report) -> str:
    """The answer in one or two sentences."""
    states = report["card_s"]
    known, seen = known_s(states), sum(card["samples"] > 0 for card in report["cards"])
    if known <= 0:
        return "Of this window nothing is known: no sample told what a card did."
    held, idle = (equivalent_cards(seconds, known, seen) for seconds in (states["idle-held"], states["truly-idle"]))
    worked, unused, free = (
        percent(part, known) for part in (states["active"], states["idle-held"], states["truly-idle"])
    )
    return (
        f"Of the time whose use is known, {worked} was worked, {unused} was held without work and {free} was free. "
        f"Of {seen} cards that amounts to {held} held without work and {idle} free."
    )


def _amounts(report: Report) -> dict[str, float]:
    states = report["card_s"]
    return {
        "active": states["active"],
        "idle-held": states["idle-held"],
        "truly-idle": states["truly-idle"],
        "unknown": states["unknown"],
    }


def _tile(kind: str, words: str, figure: str, *small: str) -> str:
    lines = "<br>".join(escape(line) for line in small if line)
    return f'<div class="tile {kind}">{escape(words)}<b>{escape(figure)}</b><small>{lines}</small></div>'


def _timeline(report: Report) -> Iterator[str]:
    timeline = report.get("timeline")
    if not timeline or not timeline["cards"]:
        return
    rows, (zone, _) = timeline_rows(timeline), zone_of(report)
    steps = len(timeline["cards"][0]["steps"])
    first_ms = parse_time_ms(timeline["since"])
    moments = [first_ms + part * steps * timeline["step_s"] * MS_PER_SECOND // 4 for part in range(5)]
    yield '<h2>Each card over time</h2>\n<div class="timeline">'
    for card in report["cards"]:
        if card["uuid"] in rows:
            name = f"{count(card['index']) if card['retired_at'] is None else 'x'} {card_name(card)}"
            yield f'<span class="name">{escape(name)}</span>{rows[card["uuid"]]}'
    marks = "".join(f"<span>{escape(clock_time(to_iso(moment), zone)[5:])}</span>" for moment in moments)
    yield f'<span class="blank"></span><div class="axis">{marks}</div></div>'
    step = _step_name(timeline["step_s"])
    basis = f"One column is {step}, filled from the bottom by state in the colours above; blank: nothing was expected."
    yield _paragraph(basis, "basis")


def _step_name(step_s: int) -> str:
    """`15 minutes`, `1 hour`, `2 days`."""
    units = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
    unit_s, unit = next((size, name) for size, name in units if step_s >= size)
    number = f"{step_s / unit_s:g}"
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"


def _section(number: int, section: Section, report: Report) -> Iterator[str]:
    yield f'<section id="{section.key}"><h2>{number}. {escape(section.title)}</h2>'
    yield from map(_table, section.tables)
    if section.heat:
        maps = (_heat(state, report) for state in section.heat)
        yield f'<div class="maps">{"".join(maps)}</div>'
    if section.lines:
        yield f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in section.lines)}</ul>"
    if section.basis:
        dashed = " Dashed: nothing known." if section.heat else ""
        yield _paragraph(section.basis + dashed, "basis")
    yield "</section>"


def _heat(state: str, report: Report) -> str:
    picture = heat_map(report["hours_of_week"], state)
    return f"<figure><figcaption>{escape(KIND_WORDS[state])}</figcaption>{picture}</figure>"


def _table(table: Table) -> str:
    titles = zip(table.headers, table.align)
    head = "".join(f'<th scope="col"{_class(letter)}>{_text(name)}</th>' for name, letter in titles)
    rows = "".join(
        f"<tr>{''.join(_cell(cell, letter) for cell, letter in zip(row, table.align))}</tr>\n" for row in table.rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>'


def _cell(cell: Cell, letter: str) -> str:
    if isinstance(cell, Bar):
        return f'<td class="bar">{split_bar(cell.amounts)}</td>'
    return f"<td{_class(letter)}>{_text(cell)}</td>"


def _class(letter: str) -> str:
    return ' class="r"' if letter == "r" else ""


def _paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{_text(text)}</p>' if kind else f"<p>{_text(text)}</p>"


def _text(text: str) -> str:
    """Text that shows as itself and nothing else."""
    return escape(text.replace(NO_BREAK, " "))


def _footer(report: Report) -> str:
    zone, name = zone_of(report)
    host = report["host"]
    made = f"Made {clock_time(report['generated_at'], zone)} ({name}) by gua {shown(host['agent_version'])}"
    driver = f", driver {shown(host['driver_version'])}" if host["driver_version"] else ""
    return f"<footer>{_text(made + driver)}. Card index for display; the UUID is the key.</footer>"
