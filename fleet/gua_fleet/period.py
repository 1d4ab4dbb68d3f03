"""The window of a fleet report, in absolute times that every host is asked for alike. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo

from gua.coverage import slot_ceil, slot_floor
from gua.errors import UsageError
from gua.report.window import RAGGED_UP_TO_MS
from gua.units import to_iso

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


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


def last_week(now_ms: int, zone: tzinfo) -> tuple[int, int]:
    """The whole week before this one, Monday to Monday, by the clocks of `zone`."""
    today = _midnight(now_ms, zone)
    monday = today - timedelta(days=today.weekday())
    return _ms(monday - timedelta(days=7)), _ms(monday)


def last_month(now_ms: int, zone: tzinfo) -> tuple[int, int]:
    """The whole calendar month before this one, by the clocks of `zone`."""
    first = _midnight(now_ms, zone).replace(day=1)
    return _ms((first - timedelta(days=1)).replace(day=1)), _ms(first)


def _midnight(now_ms: int, zone: tzinfo) -> datetime:
    moment = (_EPOCH + timedelta(milliseconds=now_ms)).astimezone(zone)
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _ms(moment: datetime) -> int:
    """A day is 23 or 25 hours long where the clocks change: subtracting dates moves the wall clock, not the time."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)
