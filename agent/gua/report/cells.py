"""How single figures look in every table: amounts, names, bars. Pure.

Unknown prints "-", zero prints "0", and what is too small to show is not shown as zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Optional

from gua.report.notes import NO_BREAK
from gua.shares import percent_number
from gua.units import parse_time_ms

UNKNOWN = "-"
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class Look:
    """What the place that is written to can show. unicode: block characters. colour: terminal sequences."""

    unicode: bool = True
    colour: bool = False

    def bold(self, text: str) -> str:
        return self.paint("1", text)

    def warn(self, text: str) -> str:
        return self.paint("33", text)

    def paint(self, code: str, text: str) -> str:
        """`text` in a terminal's colour `code` (empty: as it is)."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code else text


def hours(seconds: Optional[float]) -> str:
    """Hours of an amount in seconds: `1,234.5`, `3.25`, `0` for none at all, `<0.01` for less than shows."""
    if seconds is None:
        return UNKNOWN
    if seconds <= 0:
        return "0"
    value = seconds / SECONDS_PER_HOUR
    if value < 0.005:
        return "<0.01"
    return f"{value:.2f}" if value < 9.995 else f"{value:,.1f}"


def kwh(joules: Optional[float]) -> str:
    """Kilowatt-hours of joules, written as `hours` writes hours."""
    return hours(None if joules is None else joules / 1000)


def gigabytes(mb: Optional[float]) -> str:
    """GiB of MiB, one digit after the point below 10: `0.4`, `61`; `-` where unknown, `<0.1` for less than shows."""
    if mb is None:
        return UNKNOWN
    value = mb / 1024
    if 0 < value < 0.05:
        return "<0.1"
    return f"{value:.1f}" if 0 < value < 9.95 else f"{value:.0f}"


def count(number: Optional[int]) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def percent(part: float, whole: float) -> str:
    """`31 %` of a whole; `-` where there is nothing to divide by; `<1 %` and `>99 %` rather than 0 and 100."""
    return UNKNOWN if whole <= 0 else f"{percent_number(part / whole)} %"


def model(name: str) -> str:
    """A card's name without the words every card here has."""
    for word in ("NVIDIA ", "GeForce "):
        name = name[len(word) :] if name.startswith(word) else name
    return name


def short_uuid(uuid: str) -> str:
    """As much of a UUID as people compare: `GPU-1a2b3c4d`, `MIG-...`."""
    kind, dash, rest = uuid.partition("-")
    return f"{kind}{dash}{rest[:8]}"


def display_width(text: str) -> int:
    """Terminal columns of text without control characters; wide characters take two."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # its tables take longer to load than a small report to make

    return int(wcswidth(text))


def fit(text: str, width: int) -> str:
    """`text` in at most `width` terminal columns, cut with a dot where longer."""
    if display_width(text) <= width:
        return text
    while text and display_width(text) > width - 1:
        text = text[:-1]
    return text + "."


# One character per kind of time, in the order of a bar.
_BAR_UNICODE = {"active": "█", "idle-held": "▒", "truly-idle": "░", "unknown": "?", "unobserved": " "}
_BAR_ASCII = {"active": "#", "idle-held": "=", "truly-idle": ".", "unknown": "?", "unobserved": " "}

# Their colours on a terminal, in the same order: green, yellow, cyan, magenta.
_BAR_COLOURS = ("32", "33", "36", "35", "")


def bar(amounts: Mapping[str, float], width: int, look: Look) -> str:
    """A bar of `width` characters split like `amounts` (states and `unobserved`, seconds); blank for no time at all.

    Cells go by largest remainder, so the parts always fill the bar exactly.
    """
    return painted_bar(amounts, width, Look(unicode=look.unicode))


def painted_bar(amounts: Mapping[str, float], width: int, look: Look) -> str:
    """The same, each part in its colour where the look has colours."""
    marks = _BAR_UNICODE if look.unicode else _BAR_ASCII
    cells = _apportion([amounts.get(kind, 0.0) for kind in marks], width)
    parts = (look.paint(colour, mark * cell) for mark, colour, cell in zip(marks.values(), _BAR_COLOURS, cells) if cell)
    return "".join(parts) + " " * (width - sum(cells))


def bar_legend(look: Look) -> str:
    marks = _BAR_UNICODE if look.unicode else _BAR_ASCII
    named = [f"{mark}{NO_BREAK}{kind}" for kind, mark in marks.items() if mark != " "]
    return "  ".join([*named, f"blank:{NO_BREAK}not{NO_BREAK}seen"])


def _apportion(amounts: Sequence[float], places: int) -> list[int]:
    total = sum(amounts)
    if total <= 0:
        return [0] * len(amounts)
    exact = [amount * places / total for amount in amounts]
    whole = [int(value) for value in exact]
    by_rest = sorted(range(len(amounts)), key=lambda place: whole[place] - exact[place])
    for place in by_rest[: places - sum(whole)]:
        whole[place] += 1
    return whole


def clock_time(iso: str, zone: Optional[tzinfo]) -> str:
    """A document's time for people: `2026-03-02 09:30`, in `zone` (None: UTC)."""
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=parse_time_ms(iso))
    return moment.astimezone(zone or timezone.utc).strftime("%Y-%m-%d %H:%M")


def equivalent_cards(seconds: float, known_seconds: float, cards: int) -> str:
    """How many of `cards` a state amounts to: its share of the known time, times them. `-`: nothing is known."""
    return UNKNOWN if known_seconds <= 0 else f"{cards * seconds / known_seconds:.1f}"
