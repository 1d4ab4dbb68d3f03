"""The drawings of the HTML report as inline SVG: no script, no outside file, the same on paper. Pure.

Colours are classes of page.css, told apart by lightness too: for a grey printer and a colour-blind eye.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Optional

from gua.report.cells import percent
from gua.report.document import Timeline
from gua.report.heat import DAYS

KINDS = ("active", "idle-held", "truly-idle", "unknown", "unobserved")
KIND_WORDS = {**{kind: kind for kind in KINDS}, "unobserved": "not seen"}
_HEIGHT = 100


def split_bar(amounts: Mapping[str, float], width: int = 240, height: int = 14) -> str:
    """One bar split by kind of time, and said in words. width, height: in the drawing's own units."""
    total = sum(amounts.get(kind, 0.0) for kind in KINDS)
    words = ", ".join(f"{KIND_WORDS[kind]} {percent(amounts.get(kind, 0.0), total)}" for kind in KINDS)
    parts, x = [], 0.0
    for kind in KINDS:
        part = width * amounts.get(kind, 0.0) / total if total > 0 else 0.0
        if part > 0:
            parts.append(f'<rect class="{kind}" x="{_n(x)}" y="0" width="{_n(part)}" height="{height}"/>')
        x += part
    return _svg(width, height, words, parts, "bar")


def legend(kinds: Iterable[str] = KINDS) -> str:
    """Which colour is which kind of time."""
    marks = (
        '<span><svg class="key" viewBox="0 0 10 10" aria-hidden="true">'
        f'<rect class="{kind}" width="10" height="10"/></svg> {escape(KIND_WORDS[kind])}</span>'
        for kind in kinds
    )
    return f'<p class="legend">{" ".join(marks)}</p>'


def timeline_bar(steps: Sequence[Sequence[float]], step_s: int) -> str:
    """One card's steps side by side, each stacked by kind from the bottom; blank where nothing was expected."""
    totals = [sum(step[place] for step in steps) for place in range(len(KINDS))]
    paths = (
        f'<path class="{kind}" d="{path}"/>'
        for place, kind in enumerate(KINDS)
        if (path := "".join(_boxes(steps, place, step_s)))
    )
    words = ", ".join(f"{KIND_WORDS[kind]} {percent(total, sum(totals))}" for kind, total in zip(KINDS, totals))
    return _svg(max(1, len(steps)), _HEIGHT, words, paths, "line", stretched=True)


def _boxes(steps: Sequence[Sequence[float]], place: int, step_s: int) -> Iterator[str]:
    """Boxes of one kind; neighbours of the same height are one box, so that a quiet card costs a few bytes."""
    run: Optional[tuple[int, int, int, int]] = None  # first step, steps, top, height
    for number, step in enumerate([*steps, ()]):
        top, height = _box(step, place, step_s) if step else (0, 0)
        if run and run[2:] == (top, height):
            run = (run[0], run[1] + 1, top, height)
            continue
        if run and run[3]:
            yield f"M{run[0]} {run[2]}h{run[1]}v{run[3]}h-{run[1]}z"
        run = (number, 1, top, height)


def _box(step: Sequence[float], place: int, step_s: int) -> tuple[int, int]:
    """(top, height) of one kind within a step, of 100. A step that was expected in part only is drawn as if whole."""
    whole = sum(step)
    if whole <= 0 or step_s <= 0:
        return 0, 0
    low, high = (round(_HEIGHT * sum(step[:end]) / whole) for end in (place, place + 1))
    return _HEIGHT - high, high - low


def timeline_rows(timeline: Timeline) -> dict[str, str]:
    """The drawing of each card, by UUID."""
    return {one["card"]: timeline_bar(one["steps"], timeline["step_s"]) for one in timeline["cards"]}


def heat_map(hours: Sequence[Mapping[str, Any]], state: str) -> str:
    """Seven days by 24 hours, stronger where more of the known card time was in the state; dashed: nothing known."""
    cells = {(one["weekday"], one["hour"]): one["card_s"] for one in hours}
    parts = []
    for day, name in enumerate(DAYS):
        parts.append(f'<text x="0" y="{day * 16 + 27}">{name}</text>')
        for hour in range(24):
            x, y = 30 + hour * 16, 15 + day * 16
            parts.append(_heat_cell(cells.get((day, hour)), state, f"{name} {hour:02d}:00", x, y))
    parts += [f'<text x="{30 + hour * 16}" y="11">{hour}</text>' for hour in (0, 6, 12, 18)]
    return _svg(30 + 24 * 16, 15 + 7 * 16, f"hours of the week, {KIND_WORDS[state]}", parts, "heat")


def _heat_cell(states: Optional[Mapping[str, float]], state: str, when: str, x: int, y: int) -> str:
    known = states["active"] + states["idle-held"] + states["truly-idle"] if states else 0.0
    place = f'x="{x}" y="{y}" width="15" height="15"'
    if states is None or known <= 0:
        return f'<rect class="none" {place}><title>{when}: nothing known</title></rect>'
    strength = states[state] / known
    opacity = 0.0 if strength <= 0 else 0.12 + 0.88 * strength
    return (
        f'<rect class="cell" {place}/><rect class="{state}" fill-opacity="{opacity:.2f}" {place}>'
        f"<title>{when}: {percent(states[state], known)}</title></rect>"
    )


def _svg(width: int, height: int, words: str, parts: Iterable[str], kind: str, *, stretched: bool = False) -> str:
    ratio = ' preserveAspectRatio="none"' if stretched or kind == "bar" else ""
    return (
        f'<svg class="{kind}" viewBox="0 0 {width} {height}"{ratio} role="img" aria-label="{escape(words)}">'
        f"{''.join(parts)}</svg>"
    )


def _n(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
