"""What a report asks of the database, answered as plain values. Reads only."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from gua.clock import SET_CLOCK_MS
from gua.coverage import SLOT_MS, Span, clip
from gua.model import USER_UNATTRIBUTED, ProcessType, Rule, State, TickStatus, UserSource, UtilSource, Verdict
from gua.store.clock_jumps import clock_set_back
from gua.store.codes import GRAPHICS, PROCESS_TYPES, STATES, STATUSES, USER_SOURCES, UTIL_SOURCES, VERDICTS
from gua.store.devices import DeviceRow, load_devices
from gua.store.held_memory import mean_memory_mb
from gua.store.integrity import find_damage
from gua.store.sample_id import DEVICE_BITS
from gua.store.session import Session
from gua.store.sums import WindowSums
from gua.store.unheld import unheld_active_slots

if TYPE_CHECKING:
    from gua.store.evidence_rows import CardTickRow
    from gua.store.exported import Exported
    from gua.store.ledger import LedgerReader
    from gua.store.past_index import PastIndex
    from gua.store.runs import Rejudged
    from gua.store.steps import StepSums


@dataclass(frozen=True)
class HostRow:
    """The host as the newest run knew it; texts are empty when there was no run yet."""

    store_id: str
    machine_id: str
    boot_id: str
    hostname: str
    driver_version: Optional[str]
    rule: Optional[int]
    interval_ms: Optional[int]


@dataclass(frozen=True)
class UserRow:
    name: str
    source: UserSource
    uid: Optional[int]


@dataclass(frozen=True)
class HolderRow:
    """source: which rule named the user. mounts, sm_util_pct: see ProcessIdentity and Hold. since_ms: first seen."""

    user: str
    process: str
    pid: int
    memory_mb: Optional[int]
    type: ProcessType
    since_ms: int
    source: UserSource
    mounts: Optional[str]
    sm_util_pct: Optional[float]


@dataclass(frozen=True)
class NowRow:
    """The newest tick of one card. since_ms: when its state began, by unbroken ticks."""

    at_ms: int
    since_ms: int
    verdict: Verdict
    util_pct: Optional[int]
    memory_used_mb: Optional[int]
    holders: tuple[HolderRow, ...]
    util_max_pct: Optional[int] = None
    util_source: Optional[UtilSource] = None


@dataclass(frozen=True)
class HoldRow:
    """One hold with its sums over its whole life. until_ms None: it still holds.

    process_key: boot, pid and start time in one word. sm_util_pct: mean over its life, None where unknown.
    """

    user: str
    process: str
    pid: int
    device: int
    since_ms: int
    until_ms: Optional[int]
    memory_mb: Optional[int]
    state_ms: dict[State, int]
    long_idle_ms: int
    id: int
    process_key: str
    source: UserSource
    mounts: Optional[str]
    sm_util_pct: Optional[float]


@dataclass(frozen=True)
class TickRow:
    """One tick and the interval of its run."""

    at_ms: int
    status: TickStatus
    interval_ms: int


# Who a process is said to be and how hard it worked; a mean only where something is known of it.
_WHO = "process.source, mount_hint, CASE WHEN sm_util_ms > 0 THEN sm_util_pct_ms * 1.0 / sm_util_ms END"


class StoreReader:
    """renew: ends the unchanging view that is read, and begins the present one."""

    def __init__(self, connection: sqlite3.Connection, renew: Callable[[], None] = lambda: None) -> None:
        self._session = Session(connection)
        self._renew = renew

    def host(self) -> Optional[HostRow]:
        """The newest store's host; None when no program ever took this database into use."""
        rows = self._session.rows(
            "SELECT store.store_id, machine_id, coalesce(boot.boot_id, ''), coalesce(hostname, ''),"
            " driver_version, rule, interval_ms FROM store"
            " LEFT JOIN run ON run.store = store.id LEFT JOIN boot ON boot.id = run.boot"
            " ORDER BY store.id DESC, run.id DESC LIMIT 1"
        )
        return HostRow(*rows[0]) if rows else None

    def rev(self) -> int:
        """Number of the newest write transaction; 0 when there was none."""
        return int(self._session.rows("SELECT coalesce(max(rev), 0) FROM store")[0][0])

    def raw_since_ms(self) -> Optional[int]:
        """Raw ticks before this time are gone; None when none were ever removed."""
        value = self._session.rows("SELECT max(raw_since_ms) FROM store")[0][0]
        return None if value is None else int(value)

    def history_begins_ms(self) -> Optional[int]:
        """The earliest tick of a clock that was set; only its slot once that tick is gone. None when there was none."""
        if self.raw_since_ms() is None:
            return self._earliest("SELECT min(ts_ms) FROM tick WHERE ts_ms >= ?", SET_CLOCK_MS)
        slot = self._earliest("SELECT min(slot) FROM tick_slot WHERE slot >= ?", SET_CLOCK_MS // SLOT_MS)
        return None if slot is None else slot * SLOT_MS

    def _earliest(self, query: str, least: int) -> Optional[int]:
        value = self._session.rows(query, (least,))[0][0]
        value = self._session.rows(query, (0,))[0][0] if value is None else value
        return None if value is None else int(value)

    def newest_tick_ms(self) -> Optional[int]:
        """Time of the tick stored last; None when there was none."""
        rows = self._session.rows("SELECT ts_ms FROM tick ORDER BY id DESC LIMIT 1")
        return int(rows[0][0]) if rows else None

    def find_damage(self, limit_s: float) -> Optional[str]:
        """The first thing that is broken in the file; None when it is whole. Raises TooLarge. To be asked last."""
        return find_damage(self._session, limit_s)

    def newest_daemon_tick(self) -> Optional[TickRow]:
        """The tick that a daemon stored last, whatever `sync-once` stored since; None when there was none."""
        rows = self._session.rows(
            "SELECT ts_ms, status, interval_ms FROM tick JOIN run ON run.id = tick.run"
            " WHERE kind NOT IN ('sync-once', 'import') ORDER BY tick.id DESC LIMIT 1"
        )
        return TickRow(rows[0][0], STATUSES[rows[0][1]], rows[0][2]) if rows else None

    def devices(self) -> tuple[DeviceRow, ...]:
        """Every card ever seen, in display order."""
        rows = load_devices(self._session).values()
        return tuple(sorted(rows, key=lambda row: (row.index is None, row.index or 0, row.id)))

    def rules(self, ids: Iterable[int]) -> tuple[Rule, ...]:
        """The rules with these ids, oldest first."""
        columns = "active_util_pct, held_mb, unattributed_mb, unattributed_v1_mb, long_idle_s, id"
        rows = self._session.rows(f"SELECT {columns} FROM rule ORDER BY id")
        wanted = set(ids)
        return tuple(Rule(*row[:5]) for row in rows if row[5] in wanted)

    def run_rules(self) -> set[int]:
        """Ids of the rules that runs judged by, but for cards whose model has its own."""
        return {rule for (rule,) in self._session.rows("SELECT DISTINCT rule FROM run")}

    def users(self) -> dict[int, UserRow]:
        """Everybody, by id. 0: memory that nobody listed holds, where no tick needed a user for it (see rejudge)."""
        rows = self._session.rows("SELECT id, name, source, uid FROM user")
        nobody = UserRow(USER_UNATTRIBUTED, UserSource.UNATTRIBUTED, None)
        return {0: nobody, **{row[0]: UserRow(row[1], USER_SOURCES[row[2]], row[3]) for row in rows}}

    def rejudge(self, window: Span, rule: Rule) -> Rejudged:
        """The window's sums as the rule would have had them; see gua.store.rejudge."""
        from gua.store.rejudge import rejudge  # only for those who ask

        return rejudge(self._session, window, rule, self._renew)

    def verdict_ms(self, window: Span, rules: Sequence[Rule]) -> list[dict[int, int]]:
        """See `judge.verdict_ms`. Only raw ticks count."""
        from gua.store.judge import verdict_ms

        return verdict_ms(self._session, window, rules, self._longest_cover_ms())

    def present_under(self, rule: Rule) -> dict[int, tuple[int, int]]:
        """See `judge.present_under`."""
        from gua.store.judge import present_under

        return present_under(self._session, rule)

    def sums(self, slots: tuple[int, int], ragged: Iterable[Span], alike: Iterable[tuple[int, int]] = ()) -> WindowSums:
        """Sums of whole slots (first, end) and of raw ticks within the spans `ragged`, which meet no such slot.

        alike: see `WindowSums.add_slots`.
        """
        sums = WindowSums()
        if slots[0] < slots[1]:
            sums.add_slots(self._session, *slots, alike)
        longest = self._longest_cover_ms()
        for window in ragged:
            sums.add_raw(self._session, window, longest)
        return sums

    def memory_held(self, window: Span) -> dict[int, Optional[float]]:
        """See `held_memory.mean_memory_mb`."""
        return mean_memory_mb(self._session, window)

    def unheld_active_slots(self, first: int, end: int, least_ms: int) -> dict[int, list[int]]:
        """See `unheld.unheld_active_slots`."""
        return unheld_active_slots(self._session, first, end, least_ms)

    def clock_set_back(self, window: Span) -> list[tuple[int, int]]:
        """See `clock_jumps.clock_set_back`."""
        return clock_set_back(self._session, window)

    def steps(self, first: int, end: int) -> StepSums:
        """See `steps.steps_between`."""
        from gua.store.steps import steps_between

        return steps_between(self._session, first, end)

    def _longest_cover_ms(self) -> int:
        return int(self._session.rows("SELECT coalesce(max(longest_cover_ms), 0) FROM store")[0][0])

    def highest_util(self, device: int, window: Span) -> tuple[Optional[int], int]:
        """See `highest.highest_util`."""
        from gua.store.highest import highest_util  # only for the doctor

        return highest_util(self._session, device, window)

    def card_ticks(self, device: int, window: Span) -> Iterator[CardTickRow]:
        """Raw ticks of one card, taken in the window or reaching into it, in time order. None beyond raw_since_ms."""
        from gua.store.evidence_rows import card_ticks  # most reports need none

        return card_ticks(self._session, device, window, self._longest_cover_ms())

    def ledger(self) -> LedgerReader:
        """What the ledger of holds and a dispute ask beyond a report."""
        from gua.store.ledger import LedgerReader  # only for those who ask

        return LedgerReader(self._session, self._longest_cover_ms())

    def exported(self, *, rollups_only: bool) -> Exported:
        """The rows of an export."""
        from gua.store.exported import Exported  # only for an export

        return Exported(self._session, rollups_only=rollups_only)

    def renew(self) -> None:
        """End the unchanging view that is read, and begin the present one."""
        self._renew()

    def past(self) -> PastIndex:
        """What is here of other recorders' history."""
        from gua.store.past_index import PastIndex  # only for an import

        return PastIndex(self._session)

    def pauses(self, window: Span) -> list[Span]:
        """The parts of the window in which the agent was told not to look, in time order.

        A pause that is not over reaches to the window's end.
        """
        rows = self._session.rows(
            "SELECT from_ms, until_ms FROM pause WHERE from_ms < ? AND coalesce(until_ms, ?) > ? ORDER BY from_ms, id",
            (window[1], window[1], window[0]),
        )
        spans = (clip((start, window[1] if end is None else end), window) for start, end in rows)
        return [span for span in spans if span[0] < span[1]]

    def now(self) -> dict[int, NowRow]:
        """The newest tick of each card that is not retired, by device id."""
        holders = self._holders_now()
        rows = self._session.rows(
            "SELECT card_now.device, ts_ms, since_ms, verdict, util_pct, memory_used_mb, util_max_pct,"
            " util_source FROM card_now"
            " JOIN tick ON tick.id = card_now.tick JOIN device ON device.id = card_now.device"
            f" JOIN gpu_sample ON gpu_sample.id = (card_now.tick << {DEVICE_BITS} | card_now.device)"
            " WHERE retired_at_ms IS NULL"
        )
        return {row[0]: _now(row, tuple(holders.get(row[0], ()))) for row in rows}

    def last_seen_ms(self) -> dict[int, int]:
        """Time of the newest tick that reached a card, by device id; without those that none ever reached."""
        return dict(self._session.rows("SELECT device, last_seen_ms FROM card_now WHERE last_seen_ms IS NOT NULL"))

    def _holders_now(self) -> dict[int, list[HolderRow]]:
        found: defaultdict[int, list[HolderRow]] = defaultdict(list)
        for row in self._session.rows(
            f"SELECT hold.device, user.name, process.name, pid, memory_mb, type, hold.since_ms, {_WHO}"
            " FROM hold JOIN card_now ON card_now.device = hold.device AND card_now.tick = hold.last_tick"
            " JOIN process ON process.id = hold.process JOIN user ON user.id = process.user"
            " WHERE is_open ORDER BY hold.id"
        ):
            user, process, pid, memory_mb, kind, since_ms, source, *rest = row[1:]
            found[row[0]].append(
                HolderRow(user, process, pid, memory_mb, PROCESS_TYPES[kind], since_ms, USER_SOURCES[source], *rest)
            )
        return found

    def holds(self, window: Span, limit: int) -> tuple[tuple[HoldRow, ...], int]:
        """Holds of compute and MPS processes that touch the window, and how many there are in all.

        Those still open first, then by long idle-held time, then the newest; at most `limit`.
        """
        touching = (
            " FROM hold JOIN process ON process.id = hold.process JOIN user ON user.id = process.user"
            " WHERE (is_open OR (NOT is_open AND until_ms > ?)) AND since_ms < ? AND type <> ?"
        )
        values = (window[0], window[1], GRAPHICS)
        rows = self._session.rows(
            "SELECT user.name, process.name, pid, device, since_ms, CASE WHEN is_open THEN NULL ELSE until_ms END,"
            f" memory_mb, {_WHO}, hold.id, (SELECT boot_id FROM boot WHERE boot.id = boot), start_ticks,"
            " active_ms, idle_held_ms, truly_idle_ms, unknown_ms, long_idle_ms"
            f"{touching} ORDER BY is_open DESC, long_idle_ms DESC, hold.id DESC LIMIT ?",
            (*values, limit),
        )
        count = int(self._session.rows(f"SELECT count(*){touching}", values)[0][0])
        return tuple(_hold(row) for row in rows), count


def _now(row: Sequence[Any], holders: tuple[HolderRow, ...]) -> NowRow:
    _, at_ms, since_ms, verdict, util_pct, memory_used_mb, util_max_pct, source = row
    util_source = None if source is None else UTIL_SOURCES[source]
    return NowRow(at_ms, since_ms, VERDICTS[verdict], util_pct, memory_used_mb, holders, util_max_pct, util_source)


def _hold(row: Sequence[Any]) -> HoldRow:
    user, process, pid, device, since_ms, until_ms, memory_mb, source, mounts, sm_util_pct, hold = row[:11]
    boot_id, start_ticks, *state_ms, long_idle_ms = row[11:]
    return HoldRow(
        user=user,
        process=process,
        pid=pid,
        device=device,
        since_ms=since_ms,
        until_ms=until_ms,
        memory_mb=memory_mb,
        state_ms=dict(zip(STATES, state_ms)),
        long_idle_ms=long_idle_ms,
        id=hold,
        process_key=f"{boot_id}:{pid}:{'' if start_ticks is None else start_ticks}",
        source=USER_SOURCES[source],
        mounts=mounts,
        sm_util_pct=sm_util_pct,
    )
