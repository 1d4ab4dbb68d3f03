"""The window of a fleet report, in absolute times that every host is asked for alike. Pure."""

from __future__ import annotations

from gua.coverage import slot_ceil, slot_floor
from gua.errors import UsageError
from gua.report.window import RAGGED_UP_TO_MS
from gua.units import to_iso


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
