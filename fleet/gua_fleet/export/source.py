"""The rows of an export, read from the store one history and one day at a time, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gua.coverage import SLOT_MS
from gua.store.codes import PROCESS_TYPES, STATES, STATUSES, USER_SOURCES, VERDICTS
from gua.store.expiry import EXPIRED
from gua_fleet.export.names import Names
from gua_fleet.store.days import DAY_SLOTS
from gua_fleet.store.forgotten import shown_user
from gua_fleet.store.histories import HistoryRow, histories
from gua_fleet.store.session import Session

DAY_MS = 86_400_000

Row = Sequence[Any]

_COUNTS = " AND NOT EXISTS (SELECT 1 FROM superseded AS s WHERE s.history = t.history AND s.slot = {slot})"
_SLOTS = " WHERE t.history = ? AND t.slot >= ? AND t.slot < ?" + _COUNTS.format(slot="t.slot")
# A database that went back to an older copy of itself has what it had before once more, by the same numbers.
_LAST_TOLD = (
    " AND NOT EXISTS (SELECT 1 FROM history AS own JOIN history AS branch ON branch.host = own.host"
    " AND branch.store_id = own.store_id AND branch.branch > own.branch"
    " JOIN hold AS again ON again.history = branch.id AND again.id = t.id AND again.since_ms = t.since_ms"
    " JOIN process AS same ON same.history = again.history AND same.id = again.process AND same.pid = process.pid"
    " WHERE own.id = t.history)"
)
_DAILY: Mapping[str, str] = {
    "card_slots": "SELECT device, slot, verdict, rule, covered_ms, samples, energy_mj, energy_ms FROM card_slot AS t"
    f"{_SLOTS} ORDER BY slot, device, rule, verdict",
    "user_slots": "SELECT device, person, slot, state, rule, card_ms, share_ms, shared_ms, long_idle_ms, energy_mj,"
    f" energy_ms, samples FROM user_slot AS t{_SLOTS} ORDER BY slot, person, device, rule, state",
    "tick_slots": f"SELECT slot, status, cover_ms, ticks FROM tick_slot AS t{_SLOTS} ORDER BY slot, status, cover_ms",
    "samples": "SELECT device, ts_ms, status, verdict, rule, util_pct, util_max_pct, memory_used_mb, held_mb,"
    " unattributed_mb, holders, temperature_c, power_dw, energy_j FROM tick AS t"
    " JOIN sample ON sample.history = t.history AND sample.tick = t.id"
    " JOIN occupancy ON occupancy.history = t.history AND occupancy.id = sample.occupancy"
    " WHERE t.history = ? AND ts_ms >= ? AND ts_ms < ?"
    f"{_COUNTS.format(slot=f'ts_ms / {SLOT_MS}')} ORDER BY t.id, device",
    "holds": "SELECT device, person, process.source, process.name, pid, type, since_ms, until_ms, is_open, memory_mb,"
    " active_ms, idle_held_ms, truly_idle_ms, unknown_ms, long_idle_ms, sm_util_ms, sm_util_pct_ms FROM hold AS t"
    " JOIN process ON process.history = t.history AND process.id = t.process"
    f" WHERE t.history = ? AND t.since_ms >= ? AND t.since_ms < ?{_LAST_TOLD} ORDER BY t.id",
}
_WHOLE: Mapping[str, str] = {
    "cards": "SELECT uuid, card_index, name, memory_total_mb, mig_parent_uuid, mig_profile, first_seen_ms,"
    " retired_at_ms FROM device WHERE history = ? ORDER BY id",
    "rules": "SELECT id, active_util_pct, held_mb, unattributed_mb, unattributed_v1_mb, long_idle_s FROM rule"
    " WHERE history = ? ORDER BY id",
    "pauses": "SELECT from_ms, until_ms FROM pause WHERE history = ? ORDER BY from_ms, id",
}
_BY_SLOT = ("card_slots", "user_slots", "tick_slots")


@dataclass(frozen=True)
class _Context:
    """What a history's rows refer to, by its own ids. users: (shown name, the source it was named by)."""

    host: str
    history: HistoryRow
    uuids: Mapping[int, str]
    users: Mapping[int, tuple[str, str]]

    def user(self, person: int) -> tuple[str, str | None]:
        return self.users.get(person, (EXPIRED, None))


class Source:
    """The store as an export reads it. names: what people and hosts are called in it."""

    def __init__(self, session: Session, names: Names) -> None:
        self._session = session
        self._names = names
        self._contexts = [self._context(one) for one in histories(session)]

    def days(self, dataset: str) -> list[int]:
        """The UTC days, counted since 1970, that have any rows of a daily data set, ascending."""
        by_slot = f"SELECT DISTINCT slot / {DAY_SLOTS} FROM"
        statement = {
            "card_slots": f"{by_slot} card_slot",
            "user_slots": f"{by_slot} user_slot",
            "tick_slots": f"{by_slot} tick_slot",
            "samples": f"SELECT DISTINCT ts_ms / {DAY_MS} FROM tick",
            "holds": f"SELECT DISTINCT since_ms / {DAY_MS} FROM hold",
        }[dataset]
        return sorted(int(day) for (day,) in self._session.rows(statement))

    def check_unchanged(self) -> None:
        """Raise StoreUnusable where what was read is no one view of the store."""
        self._session.check_unchanged()

    def daily(self, dataset: str, day: int) -> Iterator[list[Row]]:
        """The rows of one day in batches, one history after another."""
        unit = DAY_SLOTS if dataset in _BY_SLOT else DAY_MS
        for context in self._contexts:
            values = (context.history.id, day * unit, (day + 1) * unit)
            rows = self._session.rows(_DAILY[dataset], values)
            if rows:
                yield [self._row(dataset, context, row) for row in rows]

    def whole(self, dataset: str) -> Iterator[list[Row]]:
        """All rows of a data set that is not daily, in batches."""
        for context in self._contexts:
            head = (context.host, context.history.id)
            if dataset == "hosts":
                yield [(*head, *_about(context.history))]
            else:
                rows = self._session.rows(_WHOLE[dataset], (context.history.id,))
                yield [(*head, *row) for row in rows]

    def _context(self, history: HistoryRow) -> _Context:
        uuids = dict(self._session.rows("SELECT id, uuid FROM device WHERE history = ?", (history.id,)))
        users = {
            number: (self._names.user(shown_user(name), history.name), USER_SOURCES[source].value)
            for number, name, source in self._session.rows(
                "SELECT id, name, source FROM person WHERE history = ?", (history.id,)
            )
        }
        return _Context(self._names.host(history.name), history, uuids, users)

    def _row(self, dataset: str, context: _Context, row: Row) -> Row:
        make = {"card_slots": _card_slot, "user_slots": _user_slot, "tick_slots": _tick_slot, "samples": _sample}
        cells = make[dataset](context, row) if dataset in make else self._hold(context, row)
        return (context.host, context.history.id, *cells)

    def _hold(self, context: _Context, row: Row) -> Row:
        device, person, source, process, pid, kind, since_ms, until_ms, is_open, memory_mb = row[:10]
        *amounts, sm_ms, sm_pct_ms = row[10:]
        who = (context.user(person)[0], USER_SOURCES[source].value, *self._names.process(process, pid))
        times = (PROCESS_TYPES[kind].value, since_ms, until_ms, bool(is_open), memory_mb)
        mean_pct = round(sm_pct_ms / sm_ms, 1) if sm_ms > 0 else None
        return (context.uuids.get(device), *who, *times, *(amount / 1e3 for amount in amounts), mean_pct)


def _card_slot(context: _Context, row: Row) -> Row:
    device, slot, verdict, rule, covered_ms, samples, *energy = row
    where = (context.uuids.get(device), slot * SLOT_MS)
    return (*where, *_verdict(verdict), rule, covered_ms / 1e3, samples, *_energy(*energy))


def _user_slot(context: _Context, row: Row) -> Row:
    device, person, slot, state, rule, *amounts_ms, energy_mj, energy_ms, samples = row
    where = (context.uuids.get(device), *context.user(person), slot * SLOT_MS, STATES[state].value, rule)
    return (*where, *(amount / 1e3 for amount in amounts_ms), *_energy(energy_mj, energy_ms), samples)


def _tick_slot(context: _Context, row: Row) -> Row:
    slot, status, cover_ms, ticks = row
    return (slot * SLOT_MS, STATUSES[status].value, cover_ms / 1e3, ticks)


def _sample(context: _Context, row: Row) -> Row:
    device, ts_ms, status, verdict, *readings, power_dw, energy_j = row
    power_w = None if power_dw is None else power_dw / 10
    return (
        *(context.uuids.get(device), ts_ms, STATUSES[status].value, *_verdict(verdict)),
        *(*readings, power_w, energy_j),
    )


def _energy(energy_mj: int, energy_ms: int) -> Row:
    """Where it was known for no time it is unknown, and not none."""
    return energy_mj / 1e3 if energy_ms else None, energy_ms / 1e3


def _verdict(code: int) -> tuple[str, str | None]:
    verdict = VERDICTS[code]
    return verdict.state.value, None if verdict.reason is None else verdict.reason.value


def _about(history: HistoryRow) -> Row:
    return (
        history.store_id,
        history.branch,
        history.machine_id,
        history.agent_version,
        history.pulled_ms,
        history.raw_since_ms,
        history.ended_ms is None,
    )
