"""Sums over a window for many histories at once: whole days from days, their edges from slots, the rest from raw ticks.

What comes out is what the agent makes its own report of, with the ids of each history, so that one code makes the
figures of both.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone, tzinfo

from gua.coverage import SLOT_MS
from gua.report.hours import even_stretches
from gua.report.window import ReportWindow
from gua.store.codes import STATES
from gua.store.credit import CARD, SHARE
from gua.store.sums import WEEK_SLOTS, WindowSums
from gua_fleet.store.days import DAY_SLOTS, SUMMED, counted, little_endian
from gua_fleet.store.histories import HistoryRow, histories
from gua_fleet.store.raw import add_raw
from gua_fleet.store.session import Session

__all__ = ["HistoryRow", "histories", "raw_window", "window_sums"]

_CELL_BITS = 64
HOUR_SLOTS = 3_600_000 // SLOT_MS
_SLOT_BYTES = len(STATES) * _CELL_BITS // 8


def window_sums(
    session: Session, ids: Sequence[int], window: ReportWindow, zone: tzinfo | None = None
) -> dict[int, WindowSums]:
    """The sums of each of these histories over the window.

    zone: whose hours of the week will be asked of `WindowSums.slots`; the slots of one hour stand together there.
    Superseded slots count nowhere. The ragged ends of the window need raw ticks: see `raw_window`.
    """
    sums = {one: WindowSums() for one in ids}
    first, end = window.slots
    if first < end and sums:
        _add_cards(session, sums, first, end)
        _add_users(session, sums, first, end)
        _add_ticks(session, sums, first, end)
        for stretch in even_stretches(zone, first, end):
            _add_hours(session, sums, stretch, zone)
    for span in window.ragged:
        for history, found in sums.items():
            add_raw(session, history, span, found)
    return sums


def raw_window(session: Session, history: HistoryRow) -> tuple[int, int] | None:
    """From when until when raw ticks are here without gaps, in Unix milliseconds; None where there are none."""
    newest = session.value("SELECT max(ts_ms + cover_ms) FROM tick WHERE history = ?", (history.id,))
    if newest is None:
        return None
    oldest = session.value("SELECT min(ts_ms) FROM tick WHERE history = ?", (history.id,))
    return max(int(oldest), history.raw_since_ms or 0), int(newest)


def _parts(kind: str, ids: Iterable[int], first: int, end: int) -> str:
    """The rows of the slots first <= slot < end, from as many whole days as there are in them."""
    key, sums = SUMMED[kind]
    names = ", ".join(("history", *key, *sums))
    among = f"history IN ({', '.join(map(str, ids))})"
    days = (-(-first // DAY_SLOTS), end // DAY_SLOTS)
    edges = [(first, end)]
    parts = []
    if days[0] < days[1]:
        parts.append(f"SELECT {names} FROM {kind}_day WHERE {among} AND day >= {days[0]} AND day < {days[1]}")
        edges = [(first, days[0] * DAY_SLOTS), (days[1] * DAY_SLOTS, end)]
    parts += [
        f"SELECT {names} FROM {kind}_slot WHERE {among} AND slot >= {start} AND slot < {stop}{counted(f'{kind}_slot')}"
        for start, stop in edges
        if start < stop
    ]
    return " UNION ALL ".join(parts)


def _summed(kind: str, ids: Iterable[int], first: int, end: int) -> str:
    key, sums = SUMMED[kind]
    names = ", ".join(("history", *key))
    amounts = ", ".join(f"sum({name})" for name in sums)
    return f"SELECT {names}, {amounts} FROM ({_parts(kind, ids, first, end)}) AS part GROUP BY {names}"


def _add_cards(session: Session, sums: dict[int, WindowSums], first: int, end: int) -> None:
    for history, device, rule, verdict, *amounts in session.rows(_summed("card", sums, first, end)):
        found = sums[history]
        found.card_rules.add((device, rule))
        _add(found.cards[device, verdict], amounts)


def _add_users(session: Session, sums: dict[int, WindowSums], first: int, end: int) -> None:
    for history, person, device, _, state, *amounts in session.rows(_summed("user", sums, first, end)):
        found = sums[history]
        _add(found.users[person, state], amounts)
        found.held[device, state] += int(amounts[SHARE])
        found.user_cards[person, device] += int(amounts[CARD])


def _add_ticks(session: Session, sums: dict[int, WindowSums], first: int, end: int) -> None:
    for history, status, cover_ms, ticks in session.rows(_summed("tick", sums, first, end)):
        sums[history].ticks[status, cover_ms] += int(ticks)


def _add(sums: list[int], more: Iterable[int]) -> None:
    for position, amount in enumerate(more):
        sums[position] += int(amount)  # PostgreSQL sums to a Decimal


def _add_hours(session: Session, sums: dict[int, WindowSums], stretch: tuple[int, int], zone: tzinfo | None) -> None:
    """Add to `slots`, the times of one hour of the local week to the first of its slots.

    All of a day's figures are added at once: they stand side by side in one large number, each with room to grow.
    """
    first, end = stretch
    found: dict[tuple[int, int, int], int] = {}
    for history, day, state_ms in session.rows(
        f"SELECT history, day, state_ms FROM slot_day WHERE history IN ({', '.join(map(str, sums))})"
        " AND day >= ? AND day <= ?",
        (first // DAY_SLOTS, (end - 1) // DAY_SLOTS),
    ):
        start = day * DAY_SLOTS
        skipped = max(0, first - start)
        piece = bytes(state_ms)[skipped * _SLOT_BYTES : max(0, end - start) * _SLOT_BYTES]
        key = history, (start - first) % WEEK_SLOTS, skipped
        found[key] = found.get(key, 0) + (int.from_bytes(piece, "little") << skipped * _SLOT_BYTES * 8)
    hours = _hours(first, zone)
    for (history, phase, skipped), number in found.items():
        slots, cells = sums[history].slots, _cells(number)
        for start, stop in hours:
            slot = first + (phase + max(start, skipped)) % WEEK_SLOTS
            for state in range(len(STATES)):
                if covered_ms := sum(cells[start * len(STATES) + state : stop * len(STATES) : len(STATES)]):
                    slots[slot, state] += covered_ms


def _hours(slot: int, zone: tzinfo | None) -> list[tuple[int, int]]:
    """A UTC day's slots as (first, end) of each local hour, by the zone's offset at `slot`."""
    offset = datetime.fromtimestamp(slot * SLOT_MS // 1000, zone or timezone.utc).utcoffset() or timedelta()
    slots_in = offset // timedelta(milliseconds=SLOT_MS) % HOUR_SLOTS
    edges = [0, *range(-slots_in % HOUR_SLOTS or HOUR_SLOTS, DAY_SLOTS, HOUR_SLOTS), DAY_SLOTS]
    return list(zip(edges, edges[1:], strict=False))


def _cells(number: int) -> array[int]:
    return little_endian(array("q", number.to_bytes(DAY_SLOTS * _SLOT_BYTES, "little")))
