"""The ledger of holds: one process on one card, over consecutive ticks that saw it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Optional

from gua.store.codes import GRAPHICS
from gua.store.session import Session, TickTime

_STATE_COLUMNS = ("active_ms", "idle_held_ms", "truly_idle_ms", "unknown_ms")  # in the order of codes.STATES

_INSERT = (
    "INSERT INTO hold (process, device, type, is_open, first_tick, last_tick, since_ms, until_ms, memory_mb,"
    " active_ms, idle_held_ms, truly_idle_ms, unknown_ms, long_idle_ms, rev, sm_util_ms, sm_util_pct_ms)"
    " VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, ?, 0, 0)"
)
_UPDATE = (
    "UPDATE hold SET is_open = ?, last_tick = ?, until_ms = ?, memory_mb = ?, active_ms = ?, idle_held_ms = ?,"
    " truly_idle_ms = ?, unknown_ms = ?, long_idle_ms = ?, rev = ?, sm_util_ms = ?, sm_util_pct_ms = ?"
    " WHERE id = ?"
)


@dataclass(frozen=True)
class Seen:
    """One listed process at one tick. type: code of its ProcessType. sm_util_pct: see GpuProcess."""

    process: int
    user: int
    type: int
    memory_mb: Optional[int]
    sm_util_pct: Optional[float] = None


@dataclass
class _Hold:
    id: int
    last_tick: int
    until_ms: int
    memory_mb: Optional[int]
    state_ms: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    long_idle_ms: int = 0
    sm_util_ms: int = 0
    sm_util_pct_ms: int = 0
    is_open: bool = True

    def note_use(self, sm_util_pct: Optional[float], covered_ms: int) -> None:
        if sm_util_pct is not None:
            self.sm_util_ms += covered_ms
            self.sm_util_pct_ms += round(sm_util_pct * covered_ms)


class Holds:
    """Open holds, kept in mind and saved by `flush`."""

    def __init__(self, session: Session, going_on: str = "is_open") -> None:
        """going_on: the condition in SQL for holds that the next tick may prolong."""
        self._session = session
        self._open: dict[int, dict[tuple[int, int], _Hold]] = {}
        self._changed: dict[int, _Hold] = {}
        columns = ", ".join(_STATE_COLUMNS)
        for row in session.rows(
            f"SELECT device, process, type, id, last_tick, until_ms, memory_mb, long_idle_ms, sm_util_ms,"
            f" sm_util_pct_ms, {columns}"
            f" FROM hold WHERE {going_on}"
        ):
            hold = _Hold(row[3], row[4], row[5], row[6], list(row[10:14]), row[7], row[8], row[9])
            self._open.setdefault(row[0], {})[row[1], row[2]] = hold

    def look(self, device: int, seen: Sequence[Seen], tick: TickTime, state: int, *, long_idle: bool) -> None:
        """Take in the complete list of one card's processes: holds begin, go on and end."""
        before = self._open.get(device, {})
        now: dict[tuple[int, int], _Hold] = {}
        for one in seen:
            hold = before.get((one.process, one.type)) or now.get((one.process, one.type))
            now[one.process, one.type] = hold or self._begin(device, one, tick)
            self._note_memory(now[one.process, one.type], one.memory_mb, tick.id)
        for key, hold in before.items():
            if key not in now:
                hold.is_open = False
                self._changed[hold.id] = hold
        for one in {(one.process, one.type): one for one in seen}.values():
            now[one.process, one.type].note_use(one.sm_util_pct, tick.covered_ms)
        for hold in now.values():
            self._charge(hold, tick, state, long_idle)
        self._open[device] = now

    def add_long_idle(self, hold_id: int, length_ms: int) -> None:
        """Credit as long idle-held what a hold was charged before. Call `flush` first."""
        for holds in self._open.values():
            for hold in holds.values():
                if hold.id == hold_id:
                    hold.long_idle_ms += length_ms
                    self._changed[hold.id] = hold
                    return
        self._session.connection.execute(
            "UPDATE hold SET long_idle_ms = long_idle_ms + ?, rev = ? WHERE id = ?",
            (length_ms, self._session.rev, hold_id),
        )

    def end(self, device: int) -> None:
        """The card is gone: nothing holds it any more."""
        for hold in self._open.pop(device, {}).values():
            hold.is_open = False
            self._changed[hold.id] = hold

    def end_processes(self, processes: set[int]) -> None:
        """These processes are gone, on every card."""
        for holds in self._open.values():
            for key in [key for key in holds if key[0] in processes]:
                hold = holds.pop(key)
                hold.is_open = False
                self._changed[hold.id] = hold

    def open_processes(self) -> set[int]:
        return {process for holds in self._open.values() for process, _ in holds}

    def flush(self) -> None:
        rows = (
            (
                hold.is_open,
                hold.last_tick,
                hold.until_ms,
                hold.memory_mb,
                *hold.state_ms,
                hold.long_idle_ms,
                self._session.rev,
                hold.sm_util_ms,
                hold.sm_util_pct_ms,
                hold.id,
            )
            for hold in self._changed.values()
        )
        self._session.connection.executemany(_UPDATE, rows)
        self._changed.clear()

    def _begin(self, device: int, one: Seen, tick: TickTime) -> _Hold:
        cursor = self._session.connection.execute(
            _INSERT,
            (
                one.process,
                device,
                one.type,
                tick.id,
                tick.id,
                tick.ts_ms,
                tick.until_ms,
                one.memory_mb,
                self._session.rev,
            ),
        )
        hold = _Hold(int(cursor.lastrowid or 0), tick.id, tick.until_ms, one.memory_mb)
        self._save_memory(hold, tick.id)
        return hold

    def _note_memory(self, hold: _Hold, memory_mb: Optional[int], tick: int) -> None:
        if hold.memory_mb != memory_mb:
            hold.memory_mb = memory_mb
            self._save_memory(hold, tick)

    def _save_memory(self, hold: _Hold, tick: int) -> None:
        self._session.connection.execute(
            "INSERT OR REPLACE INTO hold_memory (hold, tick, memory_mb, rev) VALUES (?, ?, ?, ?)",
            (hold.id, tick, hold.memory_mb, self._session.rev),
        )

    def _charge(self, hold: _Hold, tick: TickTime, state: int, long_idle: bool) -> None:
        hold.last_tick = tick.id
        hold.until_ms = max(hold.until_ms, tick.until_ms)
        hold.state_ms[state] += tick.covered_ms
        hold.long_idle_ms += tick.covered_ms if long_idle else 0
        self._changed[hold.id] = hold


def users_of(seen: Iterable[Seen]) -> tuple[int, ...]:
    """Ids of the users who hold the card, ascending, each once. Graphics processes hold nothing."""
    return tuple(sorted({one.user for one in seen if one.type != GRAPHICS}))
