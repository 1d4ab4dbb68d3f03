"""Which time a report answers for: the window asked, widened to slot edges where raw ticks are not used. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from gua.coverage import SLOT_MS, Span, slot_ceil, slot_floor
from gua.errors import UsageError
from gua.units import to_iso

# Longer windows widen by up to a slot at the start: less than 1 % of them, and no raw tick is read.
RAGGED_UP_TO_MS = 48 * 3_600_000


@dataclass(frozen=True)
class ReportWindow:
    """since_ms to until_ms: the time answered for. slots: (first, end) from roll-ups. ragged: the rest, from raw."""

    since_ms: int
    until_ms: int
    slots: tuple[int, int]
    ragged: tuple[Span, ...]

    @property
    def span(self) -> Span:
        return self.since_ms, self.until_ms


def settle_window(since_ms: int, until_ms: int, *, now_ms: int, raw_since_ms: Optional[int]) -> ReportWindow:
    """The window to answer for. It never reaches beyond `now_ms`: what is to come is not unobserved.

    raw_since_ms: raw ticks before it are gone; None: none are. Raises UsageError when the window is empty.
    """
    until_ms = min(until_ms, now_ms)
    if until_ms <= since_ms:
        raise UsageError(f"the report's window is empty: {to_iso(since_ms)} is not before {to_iso(until_ms)}")
    short = until_ms - since_ms <= RAGGED_UP_TO_MS
    if not (short and _has_raw(slot_floor(since_ms), raw_since_ms)):
        since_ms = slot_floor(since_ms)
    # The slot that is not over yet cannot be widened to: its end has not been seen by anyone.
    if not ((short or slot_ceil(until_ms) > now_ms) and _has_raw(slot_floor(until_ms), raw_since_ms)):
        until_ms = min(slot_ceil(until_ms), now_ms)
    return exact_window(since_ms, until_ms)


def _has_raw(ms: int, raw_since_ms: Optional[int]) -> bool:
    return raw_since_ms is None or ms >= raw_since_ms


def exact_window(since_ms: int, until_ms: int) -> ReportWindow:
    """The window as it is: whole slots, and what is left at its ends."""
    first, end = slot_ceil(since_ms), slot_floor(until_ms)
    if first > end:
        return ReportWindow(since_ms, until_ms, (0, 0), ((since_ms, until_ms),))
    ragged = tuple(span for span in ((since_ms, first), (end, until_ms)) if span[0] < span[1])
    return ReportWindow(since_ms, until_ms, (first // SLOT_MS, end // SLOT_MS), ragged)
