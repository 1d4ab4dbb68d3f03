"""Active time in nobody's name, by quarter-hour: from roll-ups, so that raw ticks need only be read where it is."""

from __future__ import annotations

from collections import defaultdict

from gua.model import State, Verdict
from gua.store.codes import STATES, VERDICT_CODE
from gua.store.session import Session

_ACTIVE = VERDICT_CODE[Verdict(State.ACTIVE)]
_ACTIVE_STATE = STATES.index(State.ACTIVE)


def unheld_active_slots(session: Session, first: int, end: int, least_ms: int) -> dict[int, list[int]]:
    """Slots first <= slot < end by device, ascending, in which nobody held it for `least_ms` of its active time."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for slot, device in session.rows(
        "SELECT slot, device FROM (SELECT slot, device, sum(covered_ms) AS active_ms FROM card_slot"
        " WHERE slot >= ? AND slot < ? AND verdict = ? GROUP BY slot, device) LEFT JOIN"
        " (SELECT slot, device, sum(share_ms) AS held_ms FROM user_slot"
        " WHERE slot >= ? AND slot < ? AND state = ? GROUP BY slot, device) USING (slot, device)"
        " WHERE active_ms - coalesce(held_ms, 0) >= ? ORDER BY slot",
        (first, end, _ACTIVE, first, end, _ACTIVE_STATE, least_ms),
    ):
        found[device].append(slot)
    return dict(found)
