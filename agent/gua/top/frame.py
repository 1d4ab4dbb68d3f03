"""One frame of `gua top` as lines of pieces with styles, for a terminal or a pipe. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo
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
    lines = [_title(view, how.zone), *((Piece(note, "yellow"),) for note in _warnings(view)), _free(view)]
    for card in in_order(view.cards, how.sort):
        lines.append(_card_line(view, card, how, width))
        if how.holders:
            lines += [_holder_line(view, holder, how.zone) for holder in card.holders]
            lines += [(Piece(f"     {reason_text(card.reason.value)}", "magenta"),)] if card.reason else []
    return [_cut(line, width) for line in lines]


def keys_line(how: Shown, width: int) -> Line:
    verb = "hide" if how.holders else "show"
    return _cut((Piece(f"q quit   s sort (by {how.sort})   h {verb} holders", "bold"),), width)


def cropped(lines: list[Line], height: int) -> list[Line]:
    """At most `height` lines; what does not fit is counted."""
    if len(lines) <= height:
        return lines
    kept = max(0, height - 1)
    return [*lines[:kept], (Piece(f"... {len(lines) - kept} more lines", "bold"),)][: max(1, height)]


def plain_text(lines: list[Line]) -> str:
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines) + "\n"


def _title(view: TopView, zone: Optional[tzinfo]) -> Line:
    at_ms = max((card.at_ms for card in view.cards), default=None)
    age = "no sample yet" if at_ms is None else f"sample {_age(view.now_ms - at_ms)}"
    when = _clock(view.now_ms, zone, "%Y-%m-%d %H:%M:%S")
    return Piece(f"gua top  {shown(view.hostname)}", "bold"), Piece(f"  {when}  {view.source}, {age}")


def _age(ms: int) -> str:
    return f"{format_duration(ms)} old" if ms >= 0 else f"{format_duration(-ms)} in the future"


def _warnings(view: TopView) -> Iterator[str]:
    yield from (shown(note, 300) for note in view.notes)
    stale = [card for card in view.cards if view.is_stale(card)]
    if stale:
        newest_ms = max(card.at_ms for card in stale)
        which = "every sample" if len(stale) == len(view.cards) else f"the samples of {len(stale)} cards"
        yield f"STALE: {which} {_age(view.now_ms - newest_ms)} or more: free or not now, nobody knows"


def _free(view: TopView) -> Line:
    """`Free: 1, 3 (H100 80GB HBM3); 4 (A100)`: indexes by model."""
    by_model: dict[str, list[str]] = {}
    for card in in_order(view.free, "index"):
        by_model.setdefault(model(shown(card.name)), []).append(count(card.index))
    names = "; ".join(f"{', '.join(indexes)} ({name})" for name, indexes in by_model.items())
    if view.scheduler and names:
        return (Piece(f"Idle, given out by {shown(view.scheduler)}: {names}", "cyan"),)
    return (Piece(f"Free: {names or 'none'}", "cyan"),)


def _card_line(view: TopView, card: TopCard, how: Shown, width: int) -> Line:
    stale = view.is_stale(card)
    style = "dim" if stale else _STYLES[card.state]
    spark_columns = max(_LEAST_SPARK, min(len(card.history), width - 63))
    power = UNKNOWN if card.power_w is None else f"{card.power_w:.0f}"
    util = UNKNOWN if card.util_pct is None else str(card.util_pct)
    return (
        Piece(f"{count(card.index):>2} {_padded(model(shown(card.name)), 15)} "),
        Piece(_spark(card.history[-spark_columns:], how.unicode), style),
        Piece(f" {'stale' if stale else card.state.value:<10} ", style),
        Piece(f"{util:>3} %", "dim" if stale else ""),
        Piece(f" {_memory_bar(card, how.unicode)} {_memory(card):>10}", "dim" if stale else ""),
        Piece(f" {power:>4} W", "dim" if stale else ""),
    )


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


def _holder_line(view: TopView, one: TopHolder, zone: Optional[tzinfo]) -> Line:
    since = ""
    if one.since_ms is not None:
        lasted = format_duration(max(0, view.now_ms - one.since_ms))
        since = f"  since {_clock(one.since_ms, zone, '%m-%d %H:%M')} ({lasted})"
    draws = "  only draws" if one.type is ProcessType.GRAPHICS else ""
    text = f"     {shown(one.user)}  {shown(one.process)} (pid {one.pid})  {gigabytes(one.memory_mb)} GB{since}{draws}"
    return (Piece(text, "dim" if draws else ""),)


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
