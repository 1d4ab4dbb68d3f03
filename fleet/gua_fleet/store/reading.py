"""Sums of a window, as the agent's own report is made of them, for many histories at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gua.report.window import ReportWindow
from gua.store.sums import WindowSums
from gua_fleet.store.raw_sums import add_raw
from gua_fleet.store.session import Session, numbers

DAY_SLOTS = 96


def window_sums(session: Session, ids: Sequence[int], window: ReportWindow) -> dict[int, WindowSums]:
    """The sums of each of these histories, with its own ids. Superseded slots are in none.

    `slots` has the ragged ends only: the hours of whole slots come from `hours_of`.
    """
    sums = {one: WindowSums() for one in ids}
    if not ids:
        return sums
    for table, column, bounds in spans(window.slots):
        _add(session, sums, _Part(table, column, bounds, _superseded(session, ids, column, bounds)))
    for span in window.ragged:
        for one in ids:
            add_raw(session, one, span, sums[one])
    return sums


def spans(slots: tuple[int, int]) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """The slots as (suffix of the tables that have them, their column, numbers): whole days, and slots at the ends."""
    first, end = slots
    day, days_end = -(-first // DAY_SLOTS), end // DAY_SLOTS
    if day >= days_end:
        if first < end:
            yield "slot", "slot", (first, end)
        return
    yield "day", "day", (day, days_end)
    if first < day * DAY_SLOTS:
        yield "slot", "slot", (first, day * DAY_SLOTS)
    if days_end * DAY_SLOTS < end:
        yield "slot", "slot", (days_end * DAY_SLOTS, end)


@dataclass(frozen=True)
class _Part:
    """Some rows of the `_slot` or `_day` tables. counts: SQL for which of them count; empty: all."""

    table: str
    column: str
    bounds: tuple[int, int]
    counts: str


def _superseded(session: Session, ids: Sequence[int], column: str, bounds: tuple[int, int]) -> str:
    """Nearly always nothing is, and then nothing is asked of every row."""
    where = f"history IN ({numbers(ids)}) AND slot >= ? AND slot < ?"
    if column == "day" or not session.rows(f"SELECT 1 FROM superseded WHERE {where} LIMIT 1", bounds):
        return ""
    return " AND NOT EXISTS (SELECT 1 FROM superseded AS s WHERE s.history = t.history AND s.slot = t.slot)"


def total(column: str) -> str:
    """A sum in SQL. PostgreSQL's own is of a wider kind, which would come as another type."""
    return f"CAST(sum({column}) AS BIGINT)"


def _add(session: Session, sums: dict[int, WindowSums], part: _Part) -> None:
    for history, device, verdict, rule, *amounts in _rows(
        session, sums, part, "card", "device, verdict, rule", "covered_ms samples energy_mj energy_ms"
    ):
        found = sums[history]
        found.card_rules.add((device, rule))
        add_amounts(found.cards[device, verdict], amounts)
    for history, person, device, state, *amounts in _rows(
        session,
        sums,
        part,
        "user",
        "person, device, state",
        "card_ms share_ms shared_ms long_idle_ms energy_mj energy_ms samples",
    ):
        found = sums[history]
        add_amounts(found.users[person, state], amounts)
        found.held[device, state] += amounts[1]
        found.user_cards[person, device] += amounts[0]
    for history, status, cover_ms, ticks in _rows(session, sums, part, "tick", "status, cover_ms", "ticks"):
        sums[history].ticks[status, cover_ms] += ticks


def _rows(
    session: Session, ids: Iterable[int], part: _Part, kind: str, keys: str, amounts: str
) -> Iterable[Sequence[Any]]:
    totals = ", ".join(map(total, amounts.split()))
    return session.rows(
        f"SELECT history, {keys}, {totals} FROM {kind}_{part.table} AS t WHERE history IN ({numbers(ids)})"
        f" AND {part.column} >= ? AND {part.column} < ?{part.counts} GROUP BY history, {keys}",
        part.bounds,
    )


def add_amounts(sums: list[int], more: Iterable[int]) -> None:
    for position, amount in enumerate(more):
        sums[position] += amount
