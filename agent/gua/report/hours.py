"""Card time by hour of the local week. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Optional

from gua.coverage import SLOT_MS
from gua.report.amounts import states_of
from gua.report.document import HourOfWeek
from gua.store.codes import STATES


def hours_of_week(slots: Mapping[tuple[int, int], int], zone: Optional[tzinfo]) -> list[HourOfWeek]:
    """Card time by local weekday and hour; none where the zone is not known.

    slots: (slot, state code) -> covered milliseconds of all cards. A slot lies in one local hour, as every zone's
    offset is a multiple of it, half-hour zones and the days of a clock change included.
    """
    if zone is None:
        return []
    hours: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * len(STATES))
    for (slot, state), covered_ms in slots.items():
        local = datetime.fromtimestamp(slot * SLOT_MS // 1000, zone)
        hours[local.weekday(), local.hour][state] += covered_ms
    return [
        {"weekday": weekday, "hour": hour, "card_s": states_of(amounts)}
        for (weekday, hour), amounts in sorted(hours.items())
        if any(amounts)
    ]
