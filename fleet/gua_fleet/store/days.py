"""Sums of whole days, made anew from the slots of the days that changed."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator

from gua.coverage import SLOT_MS
from gua.store.codes import STATE_OF_VERDICT, STATES
from gua.store.expiry import EXPIRED
from gua_fleet.store.session import Session
from gua_fleet.store.shape import NotBelieved

DAY_SLOTS = 86_400_000 // SLOT_MS

# table of slots -> (its key after the slot, its sums)
SUMMED = {
    "card": (("device", "rule", "verdict"), ("covered_ms", "samples", "energy_mj", "energy_ms")),
    "user": (
        ("person", "device", "rule", "state"),
        ("card_ms", "share_ms", "shared_ms", "long_idle_ms", "energy_mj", "energy_ms", "samples"),
    ),
    "tick": (("status", "cover_ms"), ("ticks",)),
}
_RANGE = " WHERE history = ? AND slot >= ? AND slot < ?"


def counted(table: str) -> str:
    """The condition that a row of this table of slots counts."""
    return (
        f" AND NOT EXISTS (SELECT 1 FROM superseded AS later WHERE later.history = {table}.history"
        f" AND later.slot = {table}.slot)"
    )


def day_of(slot: int) -> int:
    return slot // DAY_SLOTS


def sum_days(session: Session, history: int, days: Iterable[int]) -> None:
    """Make the sums of these days. Raises NotBelieved where a card has more time in a slot than that has."""
    for first, end in _runs(days):
        _check(session, history, first, end)
        for kind, (key, sums) in SUMMED.items():
            _sum(session, history, (first, end), kind, key, sums)
        _sum_states(session, history, first, end)


def _runs(days: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Days as (first, end) of unbroken runs, the end not included."""
    start = end = None
    for day in sorted(set(days)):
        if end is not None and start is not None and day != end:
            yield start, end
            start = day
        start, end = day if start is None else start, day + 1
    if start is not None and end is not None:
        yield start, end


def _check(session: Session, history: int, first: int, end: int) -> None:
    more = session.value(
        "SELECT slot FROM card_slot WHERE history = ? AND slot >= ? AND slot < ?"
        " GROUP BY slot, device HAVING sum(covered_ms) > ? LIMIT 1",
        (history, first * DAY_SLOTS, end * DAY_SLOTS, SLOT_MS),
    )
    if more is not None:
        raise NotBelieved("it says of a card that a quarter-hour had more time than a quarter of an hour")
    if _users_have_more(session, history, first, end):
        raise NotBelieved("it says that a quarter-hour had more time of a card's users than there is")


def _users_have_more(session: Session, history: int, first: int, end: int) -> bool:
    """Shares of a card add up to no more than a quarter of an hour, and no one of its users had it for longer."""
    among = f"FROM user_slot AS t{_RANGE}"
    values = (history, first * DAY_SLOTS, end * DAY_SLOTS)
    shares = f"SELECT 1 {among} GROUP BY slot, device HAVING sum(share_ms) > {SLOT_MS} LIMIT 1"
    # `(expired)` stands for many
    whole = (
        f"SELECT 1 {among} AND NOT EXISTS (SELECT 1 FROM person WHERE person.history = t.history"
        f" AND person.id = t.person AND name = ?) GROUP BY slot, device, person HAVING sum(card_ms) > {SLOT_MS} LIMIT 1"
    )
    return bool(session.value(shares, values) or session.value(whole, (*values, EXPIRED)))


def _sum(
    session: Session, history: int, days: tuple[int, int], kind: str, key: tuple[str, ...], sums: tuple[str, ...]
) -> None:
    names, table = ", ".join(key), f"{kind}_slot"
    amounts = ", ".join(f"sum({name})" for name in sums)
    session.execute(f"DELETE FROM {kind}_day WHERE history = ? AND day >= ? AND day < ?", (history, *days))
    session.execute(
        f"INSERT INTO {kind}_day (history, day, {names}, {', '.join(sums)})"
        f" SELECT history, slot / {DAY_SLOTS}, {names}, {amounts} FROM {table}{_RANGE}{counted(table)}"
        f" GROUP BY history, slot / {DAY_SLOTS}, {names}",
        (history, days[0] * DAY_SLOTS, days[1] * DAY_SLOTS),
    )


def state_sums(session: Session, history: int, first: int, end: int) -> dict[int, bytes]:
    """`slot_day.state_ms` of the days first <= day < end that have any card time that counts."""
    made: dict[int, array[int]] = {}
    for slot, verdict, covered_ms in session.rows(
        f"SELECT slot, verdict, sum(covered_ms) FROM card_slot{_RANGE}{counted('card_slot')} GROUP BY slot, verdict",
        (history, first * DAY_SLOTS, end * DAY_SLOTS),
    ):
        day, number = divmod(slot, DAY_SLOTS)
        if day not in made:
            made[day] = array("q", bytes(8 * DAY_SLOTS * len(STATES)))
        made[day][number * len(STATES) + STATE_OF_VERDICT[verdict]] += int(covered_ms)
    return {day: little_endian(sums).tobytes() for day, sums in made.items()}


def _sum_states(session: Session, history: int, first: int, end: int) -> None:
    made = state_sums(session, history, first, end)
    session.execute("DELETE FROM slot_day WHERE history = ? AND day >= ? AND day < ?", (history, first, end))
    session.execute_many(
        "INSERT INTO slot_day (history, day, state_ms) VALUES (?, ?, ?)",
        [(history, day, state_ms) for day, state_ms in sorted(made.items())],
    )


def little_endian(numbers: array[int]) -> array[int]:
    """These numbers of this machine as the store has them, or the other way round."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
