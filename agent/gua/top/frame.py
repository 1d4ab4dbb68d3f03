"""One frame of `gua top` as lines of pieces with styles, for a terminal or a pipe. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from textwrap import wrap
from typing import NamedTuple, Optional

from gua.model import ProcessType, State
from gua.report.cells import UNKNOWN, count, display_width, fit, gigabytes, model
from gua.report.wording import reason_text
from gua.text import shown
from gua.top.view import UNSEEN, TopCard, TopHolder, TopView, in_order
from gua.units import format_duration

_STYLES = {
    State.ACTIVE: "green",
    State.IDLE_HELD: "yellow",
    State.TRULY_IDLE: "cyan",
    State.UNKNOWN: "magenta",
}
_SPARK_UNICODE, _SPARK_ASCII = "▁▂▃▄▅▆▇█", "_.-:=+*#"
_MEMORY_COLUMNS = 8
_LEAST_SPARK = 6
# Parts of a card's line that a narrow window does without, the first one first. None is cut: half a number is another.
_DISPENSABLE = ("bar", "power", "spark", "name", "memory")


class Piece(NamedTuple):
    """style: a word that terminals' colours are named by, empty for none."""

    text: str
    style: str = ""


Line = tuple[Piece, ...]


class Shown(NamedTuple):
    """How a person wants to see it. zone None: UTC."""

    sort: str = "index"
    holders: bool = True
    unicode: bool = True
    zone: Optional[tzinfo] = None


def frame(view: TopView, how: Shown, width: int) -> list[Line]:
    """The whole frame but the line of keys, each line at most `width` columns."""
    lines = [_title(view, how.zone, width)]
    lines += (line for note in _warnings(view) for line in _wrapped(note, "yellow", width))
    lines += _wrapped(_free(view), "cyan", width)
    for card in in_order(view.cards, how.sort):
        lines.append(_card_line(view, card, how, width))
        if how.holders:
            lines += [_holder_line(view, holder, how.zone, width) for holder in card.holders]
            lines += [(Piece(f"     {reason_text(card.reason.value)}", "magenta"),)] if card.reason else []
    return [_cut(line, width) for line in lines]


def keys_line(how: Shown, width: int) -> Line:
    verb = "hide" if how.holders else "show"
    return (Piece(_whole("q quit", f"   s sort (by {how.sort})", f"   h {verb} holders", width=width), "bold"),)


def cropped(lines: list[Line], height: int) -> list[Line]:
    """At most `height` lines; what does not fit is counted."""
    if len(lines) <= height:
        return lines
    kept = max(0, height - 1)
    return [*lines[:kept], (Piece(f"... {len(lines) - kept} more lines", "bold"),)][: max(1, height)]


def plain_text(lines: list[Line]) -> str:
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines) + "\n"


def _title(view: TopView, zone: Optional[tzinfo], width: int) -> Line:
    at_ms = max((card.at_ms for card in view.cards), default=None)
    age = "no sample yet" if at_ms is None else f"sample {_age(view.now_ms - at_ms)}"
    when = _clock(view.now_ms, zone, "%Y-%m-%d %H:%M:%S")
    name = fit(f"gua top  {shown(view.hostname)}", width)
    text = _whole(name, f"  {when}", f"  {age}", f"  {view.source}", width=width)
    return Piece(name, "bold"), Piece(text[len(name) :])


def _age(ms: int) -> str:
    return f"{format_duration(ms)} old" if ms >= 0 else f"{format_duration(-ms)} in the future"


def _warnings(view: TopView) -> Iterator[str]:
    yield from (shown(note, 300) for note in view.notes)
    stale = [card for card in view.cards if view.is_stale(card)]
    if stale:
        newest_ms = max(card.at_ms for card in stale)
        which = "every sample" if len(stale) == len(view.cards) else f"the samples of {len(stale)} cards"
        yield f"STALE: {which} {_age(view.now_ms - newest_ms)} or more: free or not now, nobody knows"


def _free(view: TopView) -> str:
    """`Free: 1, 3 (H100 80GB HBM3); 4 (A100)`: indexes by model."""
    by_model: dict[str, list[str]] = {}
    for card in in_order(view.free, "index"):
        by_model.setdefault(model(shown(card.name)), []).append(count(card.index))
    names = "; ".join(f"{', '.join(indexes)} ({name})" for name, indexes in by_model.items())
    if view.scheduler and names:
        return f"Idle, given out by {shown(view.scheduler)}: {names}"
    return f"Free: {names or 'none'}"


def _card_line(view: TopView, card: TopCard, how: Shown, width: int) -> Line:
    stale = view.is_stale(card)
    style, figures = ("dim", "dim") if stale else (_STYLES[card.state], "")
    power = UNKNOWN if card.power_w is None else f"{card.power_w:.0f}"
    util = UNKNOWN if card.util_pct is None else str(card.util_pct)
    parts = {
        "index": Piece(f"{count(card.index):>2}"),
        "name": Piece(f" {_padded(model(shown(card.name)), 15)}"),
        "spark": Piece(" " * (1 + _LEAST_SPARK), style),
        "state": Piece(f" {'stale' if stale else card.state.value:<10}", style),
        "util": Piece(f" {util:>3} %", figures),
        "bar": Piece(f" {_memory_bar(card, how.unicode)}", figures),
        "memory": Piece(f" {_memory(card):>10}", figures),
        "power": Piece(f" {power:>4} W", figures),
    }
    for name in _DISPENSABLE:
        if _columns(parts.values()) > width:
            del parts[name]
    if "spark" in parts:
        columns = min(len(card.history), _LEAST_SPARK + width - _columns(parts.values()))
        parts["spark"] = Piece(f" {_spark(card.history[-columns:], how.unicode)}", style)
    return tuple(parts.values())


def _columns(pieces: Iterable[Piece]) -> int:
    return sum(display_width(piece.text) for piece in pieces)


def _padded(text: str, columns: int) -> str:
    text = fit(text, columns)
    return text + " " * (columns - display_width(text))


def _spark(history: tuple[Optional[int], ...], unicode: bool) -> str:
    """One mark a step: blank where nothing was seen, `?` where the reading is not known."""
    marks = _SPARK_UNICODE if unicode else _SPARK_ASCII
    return "".join(
        "?" if pct is None else " " if pct == UNSEEN else marks[min(len(marks) - 1, pct * len(marks) // 100)]
        for pct in history
    )


def _memory_bar(card: TopCard, unicode: bool) -> str:
    full, empty = ("█", "░") if unicode else ("#", ".")
    if card.memory_used_mb is None or not card.memory_total_mb:
        return "?" * _MEMORY_COLUMNS
    cells = min(_MEMORY_COLUMNS, round(card.memory_used_mb * _MEMORY_COLUMNS / card.memory_total_mb))
    return full * cells + empty * (_MEMORY_COLUMNS - cells)


def _memory(card: TopCard) -> str:
    return f"{gigabytes(card.memory_used_mb)}/{gigabytes(card.memory_total_mb)} GB"


def _holder_line(view: TopView, one: TopHolder, zone: Optional[tzinfo], width: int) -> Line:
    since = ""
    if one.since_ms is not None:
        lasted = format_duration(max(0, view.now_ms - one.since_ms))
        since = f"  since {_clock(one.since_ms, zone, '%m-%d %H:%M')} ({lasted})"
    draws = "  only draws" if one.type is ProcessType.GRAPHICS else ""
    name = f"     {shown(one.user)}"
    process, memory = f"  {shown(one.process)} (pid {one.pid})", f"  {gigabytes(one.memory_mb)} GB"
    return (Piece(_whole(name, process, memory, draws, since, width=width), "dim" if draws else ""),)


def _whole(*parts: str, width: int) -> str:
    """As many of the parts as fit whole; only the first one may be cut."""
    text = fit(parts[0], width)
    for part in parts[1:]:
        if display_width(text + part) > width:
            break
        text += part
    return text


def _wrapped(text: str, style: str, width: int) -> list[Line]:
    """Words that must all be seen, in as many lines as they need."""
    return [(Piece(line, style),) for line in wrap(text, width, subsequent_indent="  ")]


def _clock(ms: int, zone: Optional[tzinfo], form: str) -> str:
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ms)
    return moment.astimezone(zone or timezone.utc).strftime(form)


def _cut(line: Line, width: int) -> Line:
    """The line in at most `width` columns."""
    kept, left = [], width
    for text, style in line:
        if left <= 0:
            break
        text = fit(text, left)
        kept.append(Piece(text, style))
        left -= display_width(text)
    return tuple(kept)
