"""One picture of the fleet: a line a host, a cell a card, fitted to the terminal. Pure.

A cell tells what a card does now only as long as its newest sample is fresh; after that it stands in brackets, and the
line says how old it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wcwidth import wcswidth

from gua.report.cells import fit, gigabytes
from gua.text import shown
from gua.units import MS_PER_SECOND, format_duration
from gua_fleet.merge_now import FRESH_INTERVALS
from gua_fleet.present import CardNow, HostNow
from gua_fleet.short_names import short_names

ORDERS = ("name", "idle-held", "free", "trouble")
# state -> (block, letter without Unicode, colour); as in the reports
_CELLS = {
    "active": ("█", "#", "green"),
    "idle-held": ("▒", "=", "yellow"),
    "truly-idle": ("░", ".", "cyan"),
    "unknown": ("?", "?", "magenta"),
    None: ("?", "?", "magenta"),
}
_STATES = ("active", "idle-held", "truly-idle", "unknown")
_HEAD_LINES, _FOOT_LINES = 3, 1
_NAME_WIDTH = 20
_LEAST_COLUMNS, _LEAST_LINES = 20, 5

Segment = tuple[str, str]
"""Text and its style, in the words of rich; "" for none."""

Line = list[Segment]


@dataclass(frozen=True)
class Row:
    """One host. host: by its last answer that had cards, else by the newest. answer_s: seconds since that answer; None
    where there was none. trouble: why the newest question was not answered; None where it was. asked: whether it was.
    """

    host: HostNow
    answer_s: float | None = None
    trouble: str | None = None
    asked: bool = True


@dataclass(frozen=True)
class Picture:
    """What is looked at. offset: hosts scrolled past. unicode: blocks can be shown."""

    order: str = "name"
    offset: int = 0
    unicode: bool = True

    def after(self, key: str, hosts: int, page: int) -> Picture:
        """The picture after a key. page: hosts that fit."""
        if key == "s":
            return replace(self, order=ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)], offset=0)
        step = {"up": -1, "down": 1, "pgup": -page, "pgdn": page, "home": -hosts, "end": hosts}.get(key, 0)
        return replace(self, offset=max(0, min(self.offset + step, hosts - page)))


def page_of(lines: int) -> int:
    """How many hosts a terminal of so many lines shows."""
    return max(1, lines - _HEAD_LINES - _FOOT_LINES)


def compose(
    rows: Sequence[Row], picture: Picture, *, columns: int, lines: int | None, clock: str, note: str = ""
) -> list[Line]:
    """The lines of a screen of `columns` x `lines`, none longer.

    lines: None for what is no screen: as many as there are hosts, and without the keys. clock: what time it is, for
    people. note: shown last.
    """
    if columns < _LEAST_COLUMNS or (lines is not None and lines < _LEAST_LINES):
        return [[(fit("too small", columns), "")]]
    ordered = in_order(rows, picture.order)
    page = len(ordered) if lines is None else page_of(lines)
    offset = max(0, min(picture.offset, len(ordered) - page))
    visible = ordered[offset : offset + page]
    names = short_names([row.host.name for row in rows], min(_NAME_WIDTH, columns // 3))
    width = max([4, *(wcswidth(name) for name in names.values())])
    cells = _cells_width(ordered, columns - width - 2)
    body = [_host_line(row, names[row.host.name], width, cells, picture.unicode) for row in visible]
    body += [[] for _ in range(0 if lines is None else page - len(body))]
    head = [
        _title(rows, clock, columns),
        _counts(rows, picture.unicode, columns),
        [(f"{'host':<{width}}  {'cards':<{cells}}  GB used  sample", "bold")],
    ]
    keys = [] if lines is None else ["q: quit", f"s: by {picture.order}"]
    place = f"{offset + 1}-{offset + len(visible)} of {len(ordered)}" if len(visible) < len(ordered) else ""
    foot = _legend([*keys, place, shown(note, 200)], picture.unicode)
    return [_cut(line, columns) for line in [*head, *body, foot]]


def plain(lines: Sequence[Line]) -> str:
    """The same for what is no terminal: text, a newline at the end of each line."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def in_order(rows: Sequence[Row], order: str) -> list[Row]:
    """Inventory order is what `name` says, and what decides between equals."""

    def rank(row: Row) -> int:
        if order == "trouble":
            return -1 if row.trouble or row.host.stale else 0
        state = {"idle-held": "idle-held", "free": "truly-idle"}.get(order)
        return -sum(_state(row, card) == state for card in row.host.cards) if state else 0

    return sorted(rows, key=rank)


def _state(row: Row, card: CardNow) -> str | None:
    """What it does now; None where the newest sample is too old to tell, counting the time since the answer."""
    if not card.fresh or card.seen_s is None:
        return None
    old_s = card.seen_s + (row.answer_s or 0.0)
    limit_s = FRESH_INTERVALS * (row.host.interval_s or 0.0)
    return card.state if old_s <= limit_s else None


def _title(rows: Sequence[Row], clock: str, columns: int) -> Line:
    """What was asked, and who answered; without the program's name where there is no room for it."""
    answered = sum(row.asked and row.trouble is None and not row.host.left_out for row in rows)
    failed = sum(row.trouble is not None for row in rows)
    found: Line = [(f"{clock}  {_number(len(rows), 'host')}, {answered} answered", "")]
    found += [(f", {failed} did not", "red")] if failed else []
    return _first_that_fits([[("gua-fleet top", "bold"), ("  ", ""), *found], found], columns)


def _counts(rows: Sequence[Row], unicode: bool, columns: int) -> Line:
    """How many cards are in which state, in words; by the marks of the cells where there is no room for words."""
    counted = Counter(_state(row, card) for row in rows for card in row.host.cards)
    number = sum(counted.values())
    words: Line = [(_number(number, "card"), "")]
    marks: Line = [(str(number), "")]
    for state in _STATES:
        mark, style = _mark(state, unicode)
        words.append((f"  {counted[state]} {state}", style))
        marks.append((f" {mark}{counted[state]}", style))
    if counted[None]:
        words.append((f"  {counted[None]} not known now", "magenta"))
        marks.append((f" ({counted[None]})", "magenta"))
    return _first_that_fits([words, marks], columns)


def _first_that_fits(lines: Sequence[Line], columns: int) -> Line:
    return next((line for line in lines if wcswidth("".join(text for text, _ in line)) <= columns), lines[-1])


def _mark(state: str | None, unicode: bool) -> tuple[str, str]:
    """What stands for a state, and its style."""
    block, letter, colour = _CELLS.get(state, _CELLS[None])
    return block if unicode else letter, colour


def _number(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _cells_width(rows: Sequence[Row], room: int) -> int:
    """Columns for the widest row of cells with its brackets, as far as there is room for what stands behind."""
    most = max((len(row.host.cards) for row in rows), default=0)
    return max(5, min(most + 2, max(10, room - 30)))


def _host_line(row: Row, name: str, width: int, cells: int, unicode: bool) -> Line:
    padded = name + " " * (width - wcswidth(name) + 2)
    return [(padded, ""), *_cells(row, cells, unicode), ("  ", ""), *_rest(row)]


def _cells(row: Row, width: int, unicode: bool) -> Line:
    cards = row.host.cards
    known = [_state(row, card) for card in cards]
    old = bool(cards) and not any(known)
    room = width - 2
    left_out = len(cards) - room
    shown_cards = cards if left_out <= 0 else cards[: max(0, room - len(f"+{left_out + 3}"))]
    parts: Line = [("(" if old else " ", "dim")]
    for card in shown_cards:
        mark, colour = _mark(card.state if old else _state(row, card), unicode)
        parts.append((mark, f"dim {colour}" if old else colour))
    more = f"+{len(cards) - len(shown_cards)}" if len(shown_cards) < len(cards) else ""
    text = f"{more}{')' if old else ' '}"
    used = 1 + len(shown_cards) + len(text)
    return [*parts, (text + " " * (width - used), "dim")]


def _rest(row: Row) -> Line:
    """Memory and age of the newest sample; of a host in trouble its reason, and how old what is shown is."""
    host = row.host
    if not row.asked:
        return [("asking", "dim")]
    if row.trouble is not None or not host.known:
        seen = f"answered {_duration(row.answer_s)} ago; " if row.answer_s is not None else ""
        return [(f"{seen}{shown(row.trouble or _left_out(host), 200)}", "red" if row.trouble else "dim")]
    words = [f"same agent as {shown(host.twin_of)}"] if host.twin_of else []
    words += ["paused"] if host.paused else []
    words += [shown(host.scheduler)] if host.scheduler else []
    if not host.cards:
        return [(", ".join(words) or "no card", "dim")]
    sample = "never" if host.sampled_s is None else _duration(host.sampled_s + (row.answer_s or 0.0))
    return [(f"{_memory(host):>7}  {sample:>6}  {', '.join(words)}", "yellow" if host.stale else "")]


def _left_out(host: HostNow) -> str:
    return f"{host.outcome}: {host.detail}" if host.detail else host.outcome


def _memory(host: HostNow) -> str:
    """`312/640`; `-` where one of the cards does not tell."""
    used = [card.memory_used_mb for card in host.cards if not card.mig]
    total = [card.memory_total_mb for card in host.cards if not card.mig]

    def amount(parts: list[int | None]) -> str:
        known = [part for part in parts if part is not None]
        return gigabytes(sum(known)) if known and len(known) == len(parts) else "-"

    return f"{amount(used)}/{amount(total)}"


def _legend(words: Sequence[str], unicode: bool) -> Line:
    """The words that there are; what the marks mean comes last, for it can be cut."""
    parts: Line = [(f"{word}  ", "") for word in words if word]
    for state in _STATES:
        mark, style = _mark(state, unicode)
        parts += [(mark, style), (f" {state}  ", "dim")]
    return parts


def _cut(line: Line, columns: int) -> Line:
    """The line in at most so many columns."""
    parts: Line = []
    room = columns
    for text, style in line:
        if room <= 0:
            break
        taken = fit(text, room)
        parts.append((taken, style))
        room -= wcswidth(taken)
        if taken != text:
            break
    return parts


def _duration(seconds: float | None) -> str:
    return "-" if seconds is None else format_duration(round(max(0.0, seconds) * MS_PER_SECOND))
