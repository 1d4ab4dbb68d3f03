"""Two histories of one host may know the same time: after a database was restored from a copy, or with a clock that was
set. The later one counts, a quarter-hour at a time, so that no second is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from gua_fleet.store.days import day_of, sum_days
from gua_fleet.store.session import Session


def supersede(session: Session, host: int, history: int, slots: Iterable[int]) -> set[int]:
    """Note which of these slots, in which `history` has ticks, are in another history of the host too.

    The days of the others are summed anew. Gives the days in which `history` itself no longer counts as it did.
    """
    others = [row[0] for row in session.rows("SELECT id FROM history WHERE host = ? AND id <> ?", (host, history))]
    own: set[int] = set()
    for other in others:
        shared = _shared(session, other, slots)
        loser = min(history, other)
        new = shared - {slot for (slot,) in session.rows("SELECT slot FROM superseded WHERE history = ?", (loser,))}
        session.execute_many(
            "INSERT INTO superseded (history, slot) VALUES (?, ?)", [(loser, slot) for slot in sorted(new)]
        )
        days = {day_of(slot) for slot in new}
        if loser == history:
            own |= days
        elif days:
            sum_days(session, other, days)
    return own


def _shared(session: Session, other: int, slots: Iterable[int]) -> set[int]:
    wanted = set(slots)
    if not wanted:
        return set()
    found = session.rows(
        "SELECT DISTINCT slot FROM tick_slot WHERE history = ? AND slot BETWEEN ? AND ?",
        (other, min(wanted), max(wanted)),
    )
    return wanted & {slot for (slot,) in found}
