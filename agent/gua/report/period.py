"""The period a report is asked for, from what was typed: a time, or how long ago. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo
from typing import Optional

from gua.errors import UsageError
from gua.units import parse_duration_ms, parse_time_ms, to_iso

# The calendar's own windows, as they are called on the command line.
NAMED_PERIODS = ("today", "yesterday", "last-week", "last-month")


def named_period(name: str, *, now_ms: int, zone: Optional[tzinfo]) -> tuple[int, int]:
    """(since_ms, until_ms) of a window of NAMED_PERIODS, by the calendar of `zone` (None: UTC).

    Weeks begin on Monday. `today` ends now. A day is as long as the zone makes it: 23, 24 or 25 hours.
    """
    now = datetime.fromtimestamp(now_ms / 1000, zone or timezone.utc)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    monday, first = today - timedelta(days=today.weekday()), today.replace(day=1)
    begin, end = {
        "today": (today, now),
        "yesterday": (today - timedelta(days=1), today),
        "last-week": (monday - timedelta(days=7), monday),
        "last-month": ((first - timedelta(days=1)).replace(day=1), first),
    }[name]
    return _unix_ms(begin), now_ms if name == "today" else _unix_ms(end)


def _unix_ms(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)


def parse_period(since: str, until: Optional[str], *, now_ms: int, zone: Optional[tzinfo]) -> tuple[int, int]:
    """(since_ms, until_ms), Unix UTC milliseconds, since before until.

    since, until: a duration (`7d`: that long ago) or an ISO 8601 time, read in `zone` (None: UTC) when it names no
    offset. until None: now. A duration in `since` counts back from the window's end.
    Raises UsageError for what is neither, and for a window that is empty.
    """
    until_ms = now_ms if until is None else _moment_ms(until, now_ms, zone, "--until")
    since_ms = _moment_ms(since, until_ms, zone, "--since")
    if since_ms >= until_ms:
        raise UsageError(f"the window is empty: it begins {to_iso(since_ms)} and ends {to_iso(until_ms)}")
    return since_ms, until_ms


def parse_moment(text: str, *, now_ms: int, zone: Optional[tzinfo], option: str) -> int:
    """Unix UTC milliseconds of one moment, written as the ends of a period are. Raises UsageError naming `option`."""
    return _moment_ms(text, now_ms, zone, option)


def _moment_ms(text: str, end_ms: int, zone: Optional[tzinfo], option: str) -> int:
    """Never before 1970: nothing was recorded then, and `--since 9999d` means "all of it"."""
    try:
        return max(0, end_ms - parse_duration_ms(text))
    except UsageError:
        pass
    try:
        return max(0, parse_time_ms(text, zone or timezone.utc))
    except (UsageError, OverflowError) as exc:
        raise UsageError(f"{option} {text!r} is no duration (1h, 7d) and no time (2026-01-31T08:00)") from exc
