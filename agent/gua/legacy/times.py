"""Times as gpu-usage-audit wrote them, and the interval that their spacing shows where none was recorded. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Optional

# That tool's own default.
DEFAULT_INTERVAL_MS = 30_000

# Gaps on either side of a tick that are looked at: half of them may be odd before the result is.
_NEIGHBOURS = 5

_LONGEST_MS = 86_400_000

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?\s?(?:(Z)|([+-])(\d\d):?(\d\d))?", re.ASCII
)


def parse_ms(text: object) -> Optional[int]:
    """Unix UTC milliseconds of an ISO 8601 time, cut and not rounded; one without a zone is UTC. None: no time."""
    match = _ISO.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, _, sign, zone_hour, zone_minute = match.groups()[6:]
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return None
    offset = timedelta(hours=int(zone_hour), minutes=int(zone_minute)) if sign else timedelta()
    whole_s = (
        moment - datetime(1970, 1, 1, tzinfo=timezone.utc) - (-offset if sign == "-" else offset)
    ).total_seconds()
    return int(whole_s) * 1000 + int(f"{fraction or ''}000"[:3])


class Spacing:
    """The interval around each of these ticks, told from the gaps between them. times_ms: ascending."""

    def __init__(self, times_ms: Sequence[int]) -> None:
        self._times_ms = times_ms

    def at(self, ts_ms: int) -> int:
        """The middle one of the gaps around this tick, in whole seconds from two seconds on.

        A tick that was missed makes one odd gap, and changes nothing. Without neighbours: the tool's default.
        """
        place = bisect_left(self._times_ms, ts_ms)
        first, end = max(0, place - _NEIGHBOURS), min(len(self._times_ms), place + _NEIGHBOURS + 1)
        near = self._times_ms[first:end]
        gaps = sorted(after - before for before, after in zip(near, near[1:]) if after > before)
        return _rounded(gaps[(len(gaps) - 1) // 2]) if gaps else DEFAULT_INTERVAL_MS

    def usual(self) -> int:
        """The interval of most ticks."""
        counts = Counter(self.at(ts_ms) for ts_ms in self._times_ms[:: max(1, len(self._times_ms) // 1000)])
        return counts.most_common(1)[0][0] if counts else DEFAULT_INTERVAL_MS


def _rounded(gap_ms: int) -> int:
    step = 1_000 if gap_ms >= 2_000 else 100
    return min(_LONGEST_MS, max(step, round(gap_ms / step) * step))
