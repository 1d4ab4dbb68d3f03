"""Durations, times and sizes: text in, base units out, and back. Pure.

Base units: milliseconds for durations and Unix times (UTC), whole MiB ("MB", as NVML and nvidia-smi say) for memory.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo

from gua.errors import UsageError

MS_PER_SECOND = 1_000
MS_PER_HOUR = 3_600_000
BYTES_PER_MB = 1 << 20

_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": MS_PER_HOUR, "d": 86_400_000, "w": 7 * 86_400_000}
# Longer than any history; beyond it numbers stop fitting where they are stored.
_LONGEST_MS = 10**9 * _UNIT_MS["d"]
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


def parse_duration_ms(text: str) -> int:
    """Milliseconds in a duration such as `200ms`, `30s`, `1m`, `1h`, `7d`, `1h30m`.

    Always positive, at most 10^9 days. Raises UsageError for anything else, naming the accepted form.
    """
    compact = text.strip().lower()
    parts = _DURATION.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise UsageError(f"not a duration: {text!r} (write 200ms, 30s, 1m, 1h, 7d)")
    total = sum(float(number) * _UNIT_MS[unit] for number, unit in parts)
    if total > _LONGEST_MS:
        raise UsageError(f"longer than 1000000000d: {text[:40]!r} (write 200ms, 30s, 1m, 1h, 7d)")
    if total < 1:
        raise UsageError(f"a duration must be longer than zero: {text!r} (write 200ms, 30s, 1m, 1h, 7d)")
    return round(total)


def format_duration(ms: int) -> str:
    """A duration in its two largest units, such as `45 s`, `12 min`, `3 h 05 min`, `2 d 4 h`."""
    seconds = round(ms / 1000)
    if seconds < 60:
        return f"{seconds} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 60:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60:02d} min"
    return f"{days} d {hours % 24} h"


def to_iso(ms: int) -> str:
    """ISO 8601 in UTC with `Z`; milliseconds only where there are any."""
    moment = datetime(1970, 1, 1) + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds" if ms % 1000 else "seconds") + "Z"


def parse_time_ms(text: str, zone: tzinfo = timezone.utc) -> int:
    """Unix milliseconds of an ISO 8601 time or date; without an offset it is read in `zone`.

    Raises UsageError when the text is no such time.
    """
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError as exc:
        raise UsageError(f"not a time: {text!r} (write 2026-01-31, 2026-01-31T08:00 or ...T08:00:00Z)") from exc
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    # timedelta arithmetic, because float timestamps lose milliseconds far from 1970
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)


def bytes_to_mb(size_bytes: int) -> int:
    """Whole MiB, rounded down, as nvidia-smi prints it (so a figure here can be compared with it)."""
    return size_bytes // BYTES_PER_MB
