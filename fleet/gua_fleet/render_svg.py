"""The pictures of the HTML report: split bars and the hours of the week, as inline SVG. Pure.

Colours come from the page's style by class name, so that paper and dark screens have their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gua.report.cells import percent
from gua.report.heat import DAYS

KINDS = ("active", "idle-held", "truly-idle", "unknown", "unobserved")
_BAR_WIDTH = 1000
_CELL, _GAP = 18, 2
_LEFT, _TOP = 34, 16


def split_bar(amounts: Mapping[str, float] | None, height: int = 14) -> str:
    """A bar split like `amounts` (card-seconds by state and `unobserved`); a dash where nothing is known."""
    total = 0.0 if amounts is None else sum(amounts[kind] for kind in KINDS)
    if amounts is None or total <= 0:
        return "-"
    parts, left = [], 0.0
    for kind in KINDS:
        width = _BAR_WIDTH * amounts[kind] / total
        if width > 0:
            parts.append(f'<rect class="{kind}" x="{left:.1f}" width="{width:.1f}" height="{height}"/>')
            left += width
    spoken = ", ".join(f"{kind} {percent(amounts[kind], total)}" for kind in KINDS if amounts[kind] > 0)
    return (
        f'<svg class="bar" viewBox="0 0 {_BAR_WIDTH} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(spoken)}"><title>{escape(spoken)}</title>{"".join(parts)}</svg>'
    )


def heat_map(hours: Sequence[Mapping[str, Any]], state: str) -> str:
    """Seven days by 24 hours, stronger where more of the known card time was in `state`; blank: nothing known."""
    cells = "".join(_heat_cell(hour, state) for hour in hours)
    days = "".join(f'<text x="0" y="{_TOP + day * _CELL + _CELL - 5}">{name}</text>' for day, name in enumerate(DAYS))
    marks = "".join(f'<text x="{_LEFT + hour * _CELL}" y="11">{hour}</text>' for hour in range(0, 24, 6))
    width, height = _LEFT + 24 * _CELL, _TOP + 7 * _CELL
    return (
        f'<svg class="heat" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(state)} by hour of the week">'
        f"{days}{marks}{cells}</svg>"
    )


def _heat_cell(hour: Mapping[str, Any], state: str) -> str:
    states = hour["card_s"]
    known = states["active"] + states["idle-held"] + states["truly-idle"]
    if known <= 0:
        return ""
    part = states[state] / known
    x, y = _LEFT + hour["hour"] * _CELL, _TOP + hour["weekday"] * _CELL
    side = _CELL - _GAP
    title = f"<title>{DAYS[hour['weekday']]} {hour['hour']}:00, {escape(percent(part, 1))}</title>"
    frame = f'<rect class="cell" x="{x}" y="{y}" width="{side}" height="{side}"/>'
    fill = f'<rect class="{state}" x="{x}" y="{y}" width="{side}" height="{side}" fill-opacity="{part:.2f}"/>'
    return f"<g>{title}{frame}{fill if part > 0 else ''}</g>"
