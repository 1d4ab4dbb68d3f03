"""The window of a fleet report, in absolute times that every host is asked for alike. Pure."""

from __future__ import annotations

from datetime import tzinfo

from gua.coverage import slot_ceil, slot_floor
from gua.errors import UsageError
from gua.report.period import NAMED_PERIODS, named_period, parse_period
from gua.report.window import RAGGED_UP_TO_MS
from gua.units import parse_duration_ms, to_iso


def fleet_window(since_ms: int, until_ms: int, now_ms: int) -> tuple[int, int]:
    """The window to ask every host for, such that all of them answer for the same one.

    A host never reports beyond its own clock, and widens long windows to slot edges as far as they are past there. So
    a long window is cut at the last edge here, which is past on every clock that is not badly behind.
    Raises UsageError for a window that has not begun.
    """
    if since_ms >= now_ms:
        raise UsageError(f"the window has not begun: it begins {to_iso(since_ms)}")
    until_ms = min(until_ms, now_ms)
    if until_ms - since_ms <= RAGGED_UP_TO_MS:
        return since_ms, until_ms
    return slot_floor(since_ms), min(slot_ceil(until_ms), slot_floor(now_ms))


def other_window(text: str, this: tuple[int, int], *, now_ms: int, zone: tzinfo) -> tuple[int, int]:
    """The window to compare with, as `--compare` names it; to be asked for like `this`, in Unix UTC milliseconds.

    text: a window of the calendar (`last week`, `yesterday`), a duration (`7d`: this window, so much earlier), or
    SINCE..UNTIL. Raises UsageError for anything else, and for a window that is this one.
    """
    words = "-".join(text.split()).lower()
    if words in NAMED_PERIODS:
        other = named_period(words, now_ms=now_ms, zone=zone)
    elif ".." in text:
        since, _, until = (part.strip() for part in text.partition(".."))
        try:
            other = parse_period(since, until or None, now_ms=now_ms, zone=zone)
        except UsageError as exc:
            raise UsageError(f"--compare {text!r}: {exc}") from exc
    else:
        try:
            earlier_ms = parse_duration_ms(text)
        except UsageError as exc:
            calendar = ", ".join(name.replace("-", " ") for name in NAMED_PERIODS)
            raise UsageError(
                f"--compare {text!r}: write one of {calendar}, a duration (7d: this window, 7 days earlier), or "
                "SINCE..UNTIL (2026-01-01..2026-02-01)"
            ) from exc
        other = (max(0, this[0] - earlier_ms), this[1] - earlier_ms)
    if other[0] >= other[1]:
        raise UsageError(f"--compare {text!r}: the window is empty")
    window = fleet_window(*other, now_ms)
    if window == this:
        raise UsageError(f"--compare {text!r}: that is this window itself; choose this one with --since and --until")
    return window
