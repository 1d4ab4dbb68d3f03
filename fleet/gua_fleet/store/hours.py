"""Card time by hour of the local week, from the days of the store: exact in every zone, and quick for many hosts."""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from operator import add
from typing import Any

from gua.coverage import SLOT_MS
from gua.report.amounts import states_of
from gua.report.document import HourOfWeek
from gua.report.hours import even_stretches
from gua.store.codes import STATES
from gua_fleet.store.reading import DAY_SLOTS
from gua_fleet.store.session import Session, numbers

_DAYS = 7
_WEEK_HOURS = _DAYS * 24
_SLOT_S, _HOUR_S, _DAY_S = SLOT_MS // 1000, 3_600, 86_400
_STATES = len(STATES)
_EPOCH_WEEKDAY = 3  # 1970 began on a Thursday

Hours = dict[tuple[int, int], list[int]]
"""(weekday, hour) of the local week, Monday 0 -> covered ms of all cards by state, in the order of STATES."""


def hours_of(session: Session, ids: Sequence[int], slots: tuple[int, int], zone: tzinfo) -> dict[int, Hours]:
    """Of each history, the hours in which the slots first <= slot < end lie. Superseded slots are in none."""
    found: dict[int, Hours] = {one: {} for one in ids}
    for stretch in even_stretches(zone, *slots):
        offset_s = _offset_s(zone, stretch[0])
        for (history, weekday), sums in _week(session, ids, stretch).items():
            _add_day(found[history], weekday * _DAY_S + offset_s, sums)
    return found


def add_slots(hours: Hours, slots: Mapping[tuple[int, int], int], zone: tzinfo) -> None:
    """Add the covered ms of single slots, by (slot, state)."""
    for (slot, state), covered_ms in slots.items():
        local = datetime.fromtimestamp(slot * _SLOT_S, zone)
        hours.setdefault((local.weekday(), local.hour), [0] * _STATES)[state] += covered_ms


def rows_of(hours: Hours) -> list[HourOfWeek]:
    """As a report has them."""
    return [
        {"weekday": weekday, "hour": hour, "card_s": states_of(amounts)}
        for (weekday, hour), amounts in sorted(hours.items())
        if any(amounts)
    ]


def _offset_s(zone: tzinfo, slot: int) -> int:
    offset = datetime.fromtimestamp(slot * _SLOT_S, zone).utcoffset() or timedelta()
    return offset // timedelta(seconds=1)


def _week(session: Session, ids: Sequence[int], slots: tuple[int, int]) -> dict[tuple[int, int], list[int]]:
    """By (history, weekday in UTC): a day's 96 slots by state, days of one weekday added up."""
    first, end = slots
    found: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * (DAY_SLOTS * _STATES))
    for history, day, packed in session.rows(
        f"SELECT history, day, state_ms FROM slot_day WHERE history IN ({numbers(ids)}) AND day >= ? AND day <= ?",
        (first // DAY_SLOTS, (end - 1) // DAY_SLOTS),
    ):
        amounts = _unpacked(packed)
        start, stop = max(0, first - day * DAY_SLOTS), min(DAY_SLOTS, end - day * DAY_SLOTS)
        if (start, stop) != (0, DAY_SLOTS):
            amounts = array("q", [0]) * (start * _STATES) + amounts[start * _STATES : stop * _STATES]
            amounts += array("q", [0]) * (DAY_SLOTS * _STATES - len(amounts))
        key = history, (day + _EPOCH_WEEKDAY) % _DAYS
        found[key] = list(map(add, found[key], amounts))
    return found


def _unpacked(packed: Any) -> array[int]:
    amounts = array("q", bytes(packed))
    if sys.byteorder == "big":
        amounts.byteswap()
    return amounts


def _add_day(hours: Hours, begins_s: int, sums: Sequence[int]) -> None:
    """Add a day of slots that begins so many seconds into the local week."""
    slot = 0
    while slot < DAY_SLOTS:
        at_s = begins_s + slot * _SLOT_S
        # all slots that begin in this hour
        after = min(DAY_SLOTS, slot + -(-(_HOUR_S - at_s % _HOUR_S) // _SLOT_S))
        part = sums[slot * _STATES : after * _STATES]
        if any(part):
            hour = at_s // _HOUR_S % _WEEK_HOURS
            amounts = hours.setdefault((hour // 24, hour % 24), [0] * _STATES)
            for state in range(_STATES):
                amounts[state] += sum(part[state::_STATES])
        slot = after
