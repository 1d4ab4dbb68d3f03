"""Card time by hour of the local week. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Optional

from gua.coverage import SLOT_MS
from gua.report.amounts import states_of
from gua.report.document import HourOfWeek
from gua.store.codes import STATES

_DAY = 86_400_000 // SLOT_MS


def even_stretches(zone: Optional[tzinfo], first: int, end: int) -> tuple[tuple[int, int], ...]:
    """The slots first <= slot < end cut where the zone's offset changes: within a stretch, weeks are alike."""
    stretches = []
    while first < end:
        cut = _offset_changes(zone, first, end)
        stretches.append((first, cut))
        first = cut
    return tuple(stretches)


def _offset_changes(zone: Optional[tzinfo], first: int, end: int) -> int:
    """The first slot after `first` with another offset, or `end`. Looks once a day: no zone changes and goes back."""
    offset = _offset(zone, first)
    after = next((slot for slot in range(first + _DAY, end, _DAY) if _offset(zone, slot) != offset), end - 1)
    before = max(first, after - _DAY)
    if _offset(zone, after) == offset:
        return end
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if _offset(zone, middle) == offset else (before, middle)
    return after


def _offset(zone: Optional[tzinfo], slot: int) -> Optional[timedelta]:
    return datetime.fromtimestamp(slot * SLOT_MS // 1000, zone or timezone.utc).utcoffset()


@lru_cache(maxsize=4_096)  # many hosts ask for the same ones
def _local_hour(slot: int, zone: tzinfo) -> tuple[int, int]:
    local = datetime.fromtimestamp(slot * SLOT_MS // 1000, zone)
    return local.weekday(), local.hour


def hours_of_week(slots: Mapping[tuple[int, int], int], zone: Optional[tzinfo]) -> list[HourOfWeek]:
    """Card time by local weekday and hour; none where the zone is not known.

    slots: (slot, state code) -> covered milliseconds of all cards. A slot lies in one local hour, as every zone's
    offset is a multiple of it, half-hour zones and the days of a clock change included.
    """
    if zone is None:
        return []
    hours: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * len(STATES))
    for (slot, state), covered_ms in slots.items():
        hours[_local_hour(slot, zone)][state] += covered_ms
    return [
        {"weekday": weekday, "hour": hour, "card_s": states_of(amounts)}
        for (weekday, hour), amounts in sorted(hours.items())
        if any(amounts)
    ]
