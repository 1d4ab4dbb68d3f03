"""Two histories of one host may know the same time: after a database was restored from a copy, or with a clock that was
set. One of them counts, a quarter-hour at a time, so that no second is counted twice: the latest that has ticks there.
A tick reaches over into the next quarter-hour, so one without ticks may have time in it, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gua_fleet.store.days import day_of, sum_days
from gua_fleet.store.session import Session

_At = tuple[int, int]
"""(history, slot)"""


def supersede(session: Session, host: int, history: int, slots: Iterable[int]) -> set[int]:
    """Note who counts in these slots, in which `history` has ticks or time.

    The days of the host's other histories are summed anew. Gives the days in which `history` itself no longer counts as
    it did.
    """
    wanted = set(slots)
    ids = [row[0] for row in session.rows("SELECT id FROM history WHERE host = ?", (host,))]
    if len(ids) < 2 or not wanted:
        return set()
    ticked, timed = (_in(session, table, ids, wanted) for table in ("tick_slot", "card_slot"))
    before, after = _in(session, "superseded", ids, wanted), _losers(ticked, timed)
    session.execute_many("DELETE FROM superseded WHERE history = ? AND slot = ?", sorted(before - after))
    session.execute_many("INSERT INTO superseded (history, slot) VALUES (?, ?)", sorted(after - before))
    days: defaultdict[int, set[int]] = defaultdict(set)
    for one, slot in before ^ after:
        days[one].add(day_of(slot))
    own = days.pop(history, set())
    for other, changed in days.items():
        sum_days(session, other, changed)
    return own


def _losers(ticked: set[_At], timed: set[_At]) -> set[_At]:
    by_slot: defaultdict[int, list[int]] = defaultdict(list)
    for history, slot in ticked | timed:
        by_slot[slot].append(history)
    return {
        (one, slot)
        for slot, among in by_slot.items()
        for one in among
        if one != max(among, key=lambda each: ((each, slot) in ticked, each))
    }


def _in(session: Session, table: str, ids: Iterable[int], wanted: set[int]) -> set[_At]:
    statement = f"SELECT DISTINCT slot FROM {table} WHERE history = ? AND slot BETWEEN ? AND ?"
    span = (min(wanted), max(wanted))
    return {(one, slot) for one in ids for (slot,) in session.rows(statement, (one, *span)) if slot in wanted}
