"""What the ledger of holds and a dispute ask beyond a report: who a holder was, why nothing was seen. Reads only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from gua.coverage import SLOT_MS, Span, clip, length_ms
from gua.model import ProcessType, State, UserSource
from gua.store.codes import IDLE_HELD, PROCESS_TYPES, STATE_OF_VERDICT, STATES, USER_SOURCES
from gua.store.raw import id_runs, ticks_touching
from gua.store.sample_id import sample_ids
from gua.store.session import Session
from gua.store.timeline import Timeline


@dataclass(frozen=True)
class LedgerRow:
    """One hold with everything known of it. State, long-idle and SM sums are of its whole life.

    device: id. last_tick: the newest tick that listed it. until_ms: end of that tick's time, also while it is open.
    peak_mb: the most it was seen to hold in the time asked for; None where no kept tick knew.
    sm_util_pct: mean, None where unknown.
    """

    id: int
    user: str
    source: UserSource
    process: str
    pid: int
    process_key: str
    device: int
    type: ProcessType
    is_open: bool
    first_tick: int
    last_tick: int
    since_ms: int
    until_ms: int
    memory_mb: Optional[int]
    peak_mb: Optional[int]
    state_ms: tuple[int, ...]
    long_idle_ms: int
    sm_util_pct: Optional[float]
    owner_uid: Optional[int]
    login_uid: Optional[int]
    container_id: Optional[str]
    slurm_job: Optional[str]
    mounts: Optional[str]


class HoldTick(NamedTuple):
    """One card-tick as the ledger adds it up. state: position in codes.STATES.

    start_ms, end_ms: what it covers within the window, from first to last; covered_ms: how much of that. listed: the
    lists of processes could be read. long_idle: it belongs to a long idle-held stretch. reach_ms: the interval then.
    """

    device: int
    tick: int
    state: int
    util_pct: Optional[int]
    listed: bool
    long_idle: bool
    start_ms: int
    end_ms: int
    covered_ms: int
    reach_ms: int


@dataclass(frozen=True)
class LifeRow:
    """One life of a collector. ended_ms: None where it never said so."""

    kind: str
    started_ms: int
    ended_ms: Optional[int]
    version: str


@dataclass(frozen=True)
class SlotRow:
    """Roll-up sums of one user on one card in one state, or of one card (user None), in milliseconds."""

    device: int
    state: State
    card_ms: int
    share_ms: int = 0
    shared_ms: int = 0
    long_idle_ms: int = 0
    samples: int = 0


# After every tick.
_EVER = 1 << 62
# Its first two values: the last and the first tick of the time in which the most memory held is asked for.
_LEDGER = (
    "SELECT hold.id, user.name, process.source, process.name, pid, (SELECT boot_id FROM boot WHERE boot.id = boot),"
    " start_ticks, device, type, is_open, first_tick, last_tick, since_ms, until_ms, memory_mb,"
    " (SELECT max(memory_mb) FROM hold_memory WHERE hold_memory.hold = hold.id AND tick <= ? AND tick >="
    " coalesce((SELECT max(tick) FROM hold_memory AS before WHERE before.hold = hold.id AND before.tick <= ?), 0)),"
    " active_ms, idle_held_ms, truly_idle_ms, unknown_ms, long_idle_ms,"
    " CASE WHEN sm_util_ms > 0 THEN sm_util_pct_ms * 1.0 / sm_util_ms END,"
    " owner_uid, login_uid, container_id, slurm_job, mount_hint"
    " FROM hold JOIN process ON process.id = hold.process JOIN user ON user.id = process.user"
)


class LedgerReader:
    def __init__(self, session: Session, longest_cover_ms: int) -> None:
        self._session = session
        self._longest_cover_ms = longest_cover_ms

    def holds(self, window: Span) -> list[LedgerRow]:
        """Every hold that touches the window, graphics ones too, oldest first."""
        first, last = self._session.rows("SELECT min(id), max(id) FROM tick WHERE ts_ms >= ? AND ts_ms < ?", window)[0]
        rows = self._session.rows(
            f"{_LEDGER} WHERE (is_open OR (NOT is_open AND until_ms > ?)) AND since_ms < ? ORDER BY hold.id",
            (_EVER if last is None else last, 0 if first is None else first, *window),
        )
        return [_ledger_row(row) for row in rows]

    def holds_by_id(self, ids: Iterable[int]) -> dict[int, LedgerRow]:
        found = (self._session.rows(f"{_LEDGER} WHERE hold.id = ?", (_EVER, 0, one)) for one in set(ids))
        return {rows[0][0]: _ledger_row(rows[0]) for rows in found if rows}

    def now_ticks(self) -> dict[int, int]:
        """The newest tick of each card, by device id."""
        return dict(self._session.rows("SELECT device, tick FROM card_now"))

    def hold_ticks(self, window: Span, devices: Iterable[int]) -> Iterator[HoldTick]:
        """Raw ticks of these cards within the window, in the order they were stored: one pass for all cards."""
        ticks = {tick.id: tick for tick in ticks_touching(self._session, window, self._longest_cover_ms)}
        wanted, long = set(devices), self.long_stretches()
        for first, last in id_runs(ticks):
            for tick, device, verdict, util_pct, holders in self._session.connection.execute(
                "SELECT tick, device, verdict, util_pct, holders FROM gpu_sample WHERE id BETWEEN ? AND ? ORDER BY id",
                sample_ids(first, last),
            ):
                if device not in wanted:
                    continue
                spans = [part for part in (clip(span, window) for span in ticks[tick].spans) if part[0] < part[1]]
                if spans:
                    long_idle = verdict == IDLE_HELD and device in long and bool(long[device].at(tick))
                    state, whole = STATE_OF_VERDICT[verdict], (spans[0][0], spans[-1][1])
                    covered_ms, reach_ms = sum(map(length_ms, spans)), ticks[tick].cover_ms
                    yield HoldTick(
                        device, tick, state, util_pct, holders is not None, long_idle, *whole, covered_ms, reach_ms
                    )

    def long_stretches(self) -> dict[int, Timeline[Stretch]]:
        """The long idle-held stretches of each card, by device id."""
        found: defaultdict[int, list[Stretch]] = defaultdict(list)
        for device, first, last in self._session.rows(
            "SELECT device, first_tick, last_tick FROM idle_stretch WHERE is_long"
        ):
            found[device].append(Stretch(first, last))
        return {device: Timeline(stretches) for device, stretches in found.items()}

    def rules(self, first: int, end: int) -> list[int]:
        """Ids of the rules that judged anything in slots first <= slot < end."""
        rows = self._session.rows("SELECT DISTINCT rule FROM card_slot WHERE slot >= ? AND slot < ?", (first, end))
        return [row[0] for row in rows]

    def lives(self, window: Span) -> list[LifeRow]:
        """The daemons' lives in time order: those begun within the window, and the nearest on each side of it."""
        rows = self._session.rows(
            "SELECT kind, started_ms, ended_ms, agent_version FROM run WHERE kind <> 'sync-once'"
            " AND started_ms >= coalesce((SELECT max(started_ms) FROM run WHERE started_ms <= ?"
            " AND kind <> 'sync-once'), 0)"
            " AND started_ms <= coalesce((SELECT min(started_ms) FROM run WHERE started_ms >= ?"
            " AND kind <> 'sync-once'), ?) ORDER BY started_ms, id",
            (window[0], window[1], window[1]),
        )
        return [LifeRow(*row) for row in rows]

    def faults(self, ticks: Sequence[int]) -> dict[int, str]:
        """What the driver said at ticks that could not use it, by tick id."""
        if not ticks:
            return {}
        span = (min(ticks), max(ticks))
        rows = self._session.rows("SELECT id, fault FROM tick WHERE id BETWEEN ? AND ? AND fault IS NOT NULL", span)
        return dict(rows)

    def card_slots(self, device: int, first: int, end: int) -> list[SlotRow]:
        """Roll-up sums of one card over slots first <= slot < end."""
        rows = self._session.rows(
            "SELECT verdict, sum(covered_ms), sum(samples) FROM card_slot"
            " WHERE device = ? AND slot >= ? AND slot < ? GROUP BY verdict ORDER BY verdict",
            (device, first, end),
        )
        return [SlotRow(device, STATES[STATE_OF_VERDICT[row[0]]], row[1], samples=row[2]) for row in rows]

    def user_slots(self, user: str, first: int, end: int) -> list[SlotRow]:
        """Roll-up sums of one user by card and state over slots first <= slot < end."""
        rows = self._session.rows(
            "SELECT device, state, sum(card_ms), sum(share_ms), sum(shared_ms), sum(long_idle_ms), sum(samples)"
            " FROM user_slot WHERE user = (SELECT id FROM user WHERE name = ?) AND slot >= ? AND slot < ?"
            " GROUP BY device, state ORDER BY device, state",
            (user, first, end),
        )
        return [SlotRow(row[0], STATES[row[1]], *row[2:]) for row in rows]

    def slot_holders(self, device: int, slot: int) -> list[tuple[str, int]]:
        """(user, card ms) of those who held the card in one slot, longest first."""
        return self._session.rows(
            "SELECT name, sum(card_ms) FROM user_slot JOIN user ON user.id = user_slot.user"
            " WHERE device = ? AND slot = ? GROUP BY name HAVING sum(card_ms) > 0 ORDER BY sum(card_ms) DESC, name",
            (device, slot),
        )

    def rollup_begins_ms(self, device: int) -> Optional[int]:
        """The begin of the oldest quarter-hour with sums of this card; None where there is none."""
        slot = self._session.rows("SELECT min(slot) FROM card_slot WHERE device = ?", (device,))[0][0]
        return None if slot is None else int(slot) * SLOT_MS


@dataclass(frozen=True)
class Stretch:
    first_tick: int
    last_tick: int


def _ledger_row(row: Sequence[Any]) -> LedgerRow:
    hold, user, source, process, pid, boot_id, start_ticks, device, kind, is_open = row[:10]
    first_tick, last_tick, since_ms, until_ms, memory_mb, peak_mb = row[10:16]
    return LedgerRow(
        id=hold,
        user=user,
        source=USER_SOURCES[source],
        process=process,
        pid=pid,
        process_key=f"{boot_id}:{pid}:{'' if start_ticks is None else start_ticks}",
        device=device,
        type=PROCESS_TYPES[kind],
        is_open=bool(is_open),
        first_tick=first_tick,
        last_tick=last_tick,
        since_ms=since_ms,
        until_ms=until_ms,
        memory_mb=memory_mb,
        peak_mb=peak_mb,
        state_ms=tuple(row[16:20]),
        long_idle_ms=row[20],
        sm_util_pct=row[21],
        owner_uid=row[22],
        login_uid=row[23],
        container_id=row[24],
        slurm_job=row[25],
        mounts=row[26],
    )
