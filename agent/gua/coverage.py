"""Which time is covered, cut into slots and shared out: integer milliseconds, half-open spans. Pure.

A slot is 15 minutes of UTC, because every time zone's offset is a multiple of it; slot N begins at N * SLOT_MS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Span = tuple[int, int]
"""(start_ms, end_ms), the end not included. Empty when end <= start."""

Piece = tuple[int, int, int]
"""(slot, start_ms, end_ms): a part of a span that lies within one slot."""

SLOT_MS = 900_000


def subtract(span: Span, taken: Iterable[Span]) -> tuple[Span, ...]:
    """The parts of `span` that no span of `taken` covers, in order. Spans elsewhere change nothing."""
    start, end = span
    left: list[Span] = []
    for other_start, other_end in sorted(taken):
        if other_end <= start or other_start >= end or other_end <= other_start:
            continue
        if other_start > start:
            left.append((start, other_start))
        start = other_end
    if start < end:
        left.append((start, end))
    return tuple(left)


def clip(span: Span, window: Span) -> Span:
    """The part of `span` within `window`; empty (end == start) when they do not meet."""
    start = max(span[0], window[0])
    return start, max(start, min(span[1], window[1]))


def length_ms(span: Span) -> int:
    return max(0, span[1] - span[0])


def pieces(spans: Iterable[Span]) -> Iterator[Piece]:
    """Each span cut at slot edges."""
    for start, end in spans:
        while start < end:
            slot = start // SLOT_MS
            cut = min(end, (slot + 1) * SLOT_MS)
            yield slot, start, cut
            start = cut


def slot_floor(ms: int) -> int:
    """The last slot edge at or before `ms`."""
    return ms - ms % SLOT_MS


def slot_ceil(ms: int) -> int:
    """The first slot edge at or after `ms`."""
    return slot_floor(ms + SLOT_MS - 1)


def split_evenly(total: int, parts: int, turn: int = 0) -> tuple[int, ...]:
    """`total` in `parts` whole numbers that sum to it and differ by at most 1.

    turn: which part is first to get one more, modulo parts, so that no one always does. parts >= 1, total >= 0.
    """
    each, rest = divmod(total, parts)
    return tuple(each + ((index - turn) % parts < rest) for index in range(parts))
