"""Whether the store is whole: its file, what its rows refer to, and every sum against what it is a sum of."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from gua.coverage import SLOT_MS
from gua_fleet.store.care import name_of
from gua_fleet.store.days import DAY_SLOTS, SUMMED, counted, state_sums
from gua_fleet.store.histories import HistoryRow, histories
from gua_fleet.store.models import OF_HISTORY
from gua_fleet.store.session import Session

_CURE = "`gua-fleet forget` it, and pull anew"
# table, column, what it refers to
_REFERS = (
    ("card_day", "device", "device", "id"),
    ("user_day", "device", "device", "id"),
    ("user_day", "person", "person", "id"),
    ("process", "person", "person", "id"),
    ("hold", "process", "process", "id"),
    ("hold", "device", "device", "id"),
    ("sample", "tick", "tick", "id"),
    ("sample", "device", "device", "id"),
    ("sample", "occupancy", "occupancy", "id"),
)


def check_store(session: Session) -> Iterator[str]:
    """One line for each thing that is wrong; none where the store is whole."""
    if session.is_sqlite:
        damage = _damage(session)
        yield from (f"the file is damaged: {line}" for line in damage)
        if damage:
            return  # what stands in it means nothing
    for name in map(name_of, OF_HISTORY):
        strays = session.value(
            f"SELECT count(*) FROM {name} AS t WHERE NOT EXISTS (SELECT 1 FROM history WHERE history.id = t.history)"
        )
        if strays:
            yield f"{name}: {strays:,} rows belong to no history"
    ended_ms = dict(session.rows("SELECT id, pulled_ms FROM host"))
    for history in histories(session):
        yield from _check(session, history, is_whole=history.pulled_ms <= (ended_ms.get(history.host) or 0))


def _damage(session: Session) -> list[str]:
    try:
        return [line for (line,) in session.rows("PRAGMA integrity_check(20)") if line != "ok"]
    except sqlite3.DatabaseError as exc:  # so damaged that it cannot even be looked at
        return [str(exc)]


def _check(session: Session, history: HistoryRow, *, is_whole: bool) -> Iterator[str]:
    """is_whole: its last pull went to the end. After one that was cut a row may be here without what goes with it."""
    for kind in SUMMED:
        if wrong := _days_differ(session, history.id, kind):
            yield f"{history.name}: {kind}_day and {kind}_slot differ in {wrong}: {_CURE}"
    if _hours_differ(session, history.id):
        yield f"{history.name}: slot_day and card_slot differ: {_CURE}"
    more = session.value(
        "SELECT slot FROM card_slot WHERE history = ? GROUP BY slot, device HAVING sum(covered_ms) > ? LIMIT 1",
        (history.id, SLOT_MS),
    )
    if more is not None:
        yield f"{history.name} ({history.hostname}): a card has more time in slot {more} than that has"
    if is_whole and history.ended_ms is None:
        yield from _missing(session, history)
        if history.raw_rev >= history.rev:
            yield from _raw_differs(session, history)


def _days_differ(session: Session, history: int, kind: str) -> str:
    """In what the sums of days are not those of their slots, day by day and key by key; empty: they are."""
    key, sums = SUMMED[kind]
    slots = _summed(f"{kind}_slot", f"slot / {DAY_SLOTS}", key, sums, f" AND history = ?{counted(f'{kind}_slot')}")
    days = _summed(f"{kind}_day", "day", key, sums, " AND history = ?")
    return ", ".join(_unequal(session, slots, days, ("at", *key), sums, (history, history)))


def _summed(table: str, at: str, key: Iterable[str], sums: Iterable[str], where: str) -> str:
    names = ", ".join(key)
    amounts = ", ".join(f"sum({name}) AS {name}" for name in sums)
    return f"SELECT {at} AS at, {names}, {amounts} FROM {table} WHERE 1 = 1{where} GROUP BY {at}, {names}"


def _unequal(
    session: Session, one: str, other: str, key: Sequence[str], sums: Sequence[str], values: Sequence[int]
) -> list[str]:
    """The columns that are not the same in both selections, or `rows` where one has a row that the other has not."""
    names = ", ".join(key)
    differences = ", ".join(f"sum({name} * side) AS {name}" for name in sums)
    found = session.rows(
        f"SELECT sum(CASE WHEN sides <> 2 THEN 1 ELSE 0 END), {', '.join(f'max(abs({name}))' for name in sums)} FROM"
        f" (SELECT count(*) AS sides, {differences} FROM (SELECT 1 AS side, a.* FROM ({one}) AS a"
        f" UNION ALL SELECT -1 AS side, b.* FROM ({other}) AS b) AS each_side GROUP BY {names}) AS compared",
        values,
    )
    lonely, *most = found[0]
    return [name for name, much in zip(sums, most, strict=True) if much] or (["rows"] if lonely else [])


def _hours_differ(session: Session, history: int) -> bool:
    kept = session.rows("SELECT day, state_ms FROM slot_day WHERE history = ?", (history,))
    span = session.rows("SELECT min(slot), max(slot) FROM card_slot WHERE history = ?", (history,))[0]
    made = {} if span[0] is None else state_sums(session, history, span[0] // DAY_SLOTS, span[1] // DAY_SLOTS + 1)
    return {day: bytes(state_ms) for day, state_ms in kept} != made


def _missing(session: Session, history: HistoryRow) -> Iterator[str]:
    for table, column, other, key in _REFERS:
        nothing = session.value(
            f"SELECT count(*) FROM {table} AS t WHERE history = ? AND NOT EXISTS"
            f" (SELECT 1 FROM {other} AS o WHERE o.history = t.history AND o.{key} = t.{column})",
            (history.id,),
        )
        if nothing:
            yield f"{history.name}: {nothing:,} rows of {table} name a {other} that is not there: {_CURE}"


def _raw_differs(session: Session, history: HistoryRow) -> Iterator[str]:
    """Where single ticks are whole the sums must be those of them, as far as they count them."""
    first = -(-(history.raw_since_ms or 0) // SLOT_MS)
    at, values = f"ts_ms / {SLOT_MS}", (history.id, first, history.id, first)
    since = f" AND tick.history = ? AND {at} >= ?"
    ticks = f"SELECT {at} AS at, status, cover_ms, count(*) AS ticks FROM tick WHERE 1 = 1{since} GROUP BY 1, 2, 3"
    sums = _summed("tick_slot", "slot", ("status", "cover_ms"), ("ticks",), " AND history = ? AND slot >= ?")
    if _unequal(session, ticks, sums, ("at", "status", "cover_ms"), ("ticks",), values):
        yield f"{history.name}: tick_slot counts other ticks than there are in tick: {_CURE}"
    samples = (
        f"SELECT {at} AS at, device, verdict, count(*) AS samples FROM tick JOIN sample"
        f" ON sample.history = tick.history AND sample.tick = tick.id WHERE 1 = 1{since} GROUP BY 1, 2, 3"
    )
    sums = _summed("card_slot", "slot", ("device", "verdict"), ("samples",), " AND history = ? AND slot >= ?")
    sums = f"SELECT * FROM ({sums}) AS counted WHERE samples > 0"  # time that reaches over from the slot before
    if _unequal(session, samples, sums, ("at", "device", "verdict"), ("samples",), values):
        yield f"{history.name}: card_slot counts other samples than there are in sample: {_CURE}"
