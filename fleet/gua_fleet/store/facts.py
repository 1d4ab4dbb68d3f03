"""What a report says besides sums: cards, people, rules, runs, pauses, read for many histories at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gua.clock import SET_CLOCK_MS
from gua.coverage import SLOT_MS, Span
from gua.model import USER_UNATTRIBUTED, USER_UNKNOWN, Rule, UserSource
from gua.store.codes import USER_SOURCES
from gua.store.devices import DeviceRow
from gua.store.reader import UserRow
from gua.store.sums import WindowSums
from gua_fleet.store.forgotten import shown_user
from gua_fleet.store.ids import numbers
from gua_fleet.store.session import Session

_NOBODY = UserRow(USER_UNATTRIBUTED, UserSource.UNATTRIBUTED, None)
_SOMEBODY = UserRow(USER_UNKNOWN, UserSource.UNKNOWN, None)


@dataclass
class Facts:
    """Of one history, by its own ids. devices: in display order. run_rules: those that runs judged by, but for cards
    whose model has its own. run_rule, interval_ms, driver_version: of the newest run. begins_ms: its earliest tick, or
    the beginning of that tick's slot. pauses: (from_ms, until_ms or None) in the window.
    """

    devices: list[DeviceRow] = field(default_factory=list)
    users: dict[int, UserRow] = field(default_factory=lambda: {0: _NOBODY})
    rules: dict[int, Rule] = field(default_factory=dict)
    run_rules: set[int] = field(default_factory=set)
    run_rule: int | None = None
    interval_ms: int | None = None
    driver_version: str | None = None
    begins_ms: int | None = None
    pauses: list[tuple[int, int | None]] = field(default_factory=list)


def read_facts(session: Session, ids: Sequence[int], window: Span) -> dict[int, Facts]:
    """Everything known of each history, by id."""
    found: defaultdict[int, Facts] = defaultdict(Facts)
    for history, *row in _of(session, "device", ids, _DEVICE):
        found[history].devices.append(DeviceRow(*row))
    for history, number, name, source, uid in _of(session, "person", ids, "id, name, source, uid"):
        found[history].users[number] = UserRow(shown_user(name), USER_SOURCES[source], uid)
    for history, number, *row in _of(session, "rule", ids, f"id, {_RULE}"):
        found[history].rules[number] = Rule(*row)
    for history, rule in session.rows(f"SELECT DISTINCT history, rule FROM run WHERE history IN ({numbers(ids)})"):
        found[history].run_rules.add(rule)
    for history, rule, interval_ms, driver_version in _newest_runs(session, ids):
        one = found[history]
        one.run_rule, one.interval_ms, one.driver_version = rule, interval_ms, driver_version
    for history, from_ms, until_ms in _pauses(session, ids, window):
        found[history].pauses.append((from_ms, until_ms))
    for history, begins_ms in _begins(session, ids):
        found[history].begins_ms = begins_ms
    for one in found.values():
        one.devices.sort(key=lambda row: (row.index is None, row.index or 0, row.id))
    return {one: found[one] for one in ids}


_DEVICE = (
    "id, uuid, card_index, pci_bus_id, name, memory_total_mb, mig_parent_uuid, mig_profile, first_seen_ms,"
    " retired_at_ms"
)
_RULE = "active_util_pct, held_mb, unattributed_mb, unattributed_v1_mb, long_idle_s"


def name_missing(facts: Facts, sums: WindowSums, held: Iterable[int], host: str, window: Span) -> bool:
    """Stand-ins for the cards and people that a history counts time of and does not describe; whether a card had none.

    A row comes with its last change: where a pull was cut, time may be here before the card or user it is of. held: the
    devices of holds.
    """
    cards = {device for device, _ in (*sums.cards, *sums.held)} | {device for _, device in sums.user_cards} | {*held}
    missing = sorted(cards - {row.id for row in facts.devices})
    first_ms = window[0] if facts.begins_ms is None else facts.begins_ms
    for device in missing:
        uuid = f"card-{device}@{host}"
        facts.devices.append(DeviceRow(device, uuid, None, None, None, None, None, None, first_ms, None))
    for user in {user for user, _ in (*sums.users, *sums.user_cards)} - facts.users.keys():
        facts.users[user] = _SOMEBODY
    return bool(missing)


def _of(session: Session, table: str, ids: Sequence[int], columns: str) -> list[Sequence[Any]]:
    return session.rows(f"SELECT history, {columns} FROM {table} WHERE history IN ({numbers(ids)})")


def _newest_runs(session: Session, ids: Sequence[int]) -> list[Sequence[Any]]:
    return session.rows(
        "SELECT run.history, rule, interval_ms, driver_version FROM run JOIN (SELECT history, max(id) AS id FROM run"
        f" WHERE history IN ({numbers(ids)}) GROUP BY history) AS newest"
        " ON newest.history = run.history AND newest.id = run.id"
    )


def _pauses(session: Session, ids: Sequence[int], window: Span) -> list[Sequence[Any]]:
    return session.rows(
        f"SELECT history, from_ms, until_ms FROM pause WHERE history IN ({numbers(ids)}) AND from_ms < ?"
        " AND coalesce(until_ms, ?) > ?",
        (window[1], window[1], window[0]),
    )


def _begins(session: Session, ids: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """As the agent says it: the earliest tick of a clock that was set; only its slot where ticks were let go."""
    earliest = (
        "SELECT history.id, raw_since_ms,"
        " (SELECT min(ts_ms) FROM tick AS t WHERE t.history = history.id AND ts_ms >= ?),"
        " (SELECT min(slot) FROM tick_slot AS t WHERE t.history = history.id AND slot >= ?)"
        f" FROM history WHERE history.id IN ({numbers(ids)})"
    )
    known = {row[0]: row[1:] for row in session.rows(earliest, (SET_CLOCK_MS, SET_CLOCK_MS // SLOT_MS))}
    known |= {row[0]: row[1:] for row in session.rows(earliest, (0, 0)) if known[row[0]][1:] == (None, None)}
    for history, (raw_since_ms, tick_ms, slot) in known.items():
        slot_ms = None if slot is None else slot * SLOT_MS
        yield history, tick_ms if raw_since_ms is None and tick_ms is not None else slot_ms
