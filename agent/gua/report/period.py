"""The period a report is asked for, from what was typed: a time, or how long ago. Pure."""

from __future__ import annotations

from datetime import timezone, tzinfo
from typing import Optional

from gua.errors import UsageError
from gua.units import parse_duration_ms, parse_time_ms, to_iso


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
