"""A gpu-usage-audit database, read as it is: every version's columns, a missing one being unknown. Reads only.

    0.4, 1.0.0   host, gpu_sample, proc_sample
    1.0.1        + daemon_run, and run_id in both samples
    1.1          + gpu_device; index, memory, temperature, power; process names
    1.4          + usage_state, process_type; a process may have no memory figure
    1.7          + owner_user

Each query is short, so that a daemon that still writes can fold its -wal back in between.
"""

from __future__ import annotations

import contextlib
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from gua.errors import DatabaseUnusable
from gua.legacy.times import parse_ms
from gua.text import shown

# Card-ticks asked for at once.
_ROWS = 4_000

_NEEDED = {"host": "hostname", "gpu_sample": "util_pct", "proc_sample": "pid"}

_CARD = ("gpu_uuid", "util_pct", "gpu_index", "memory_used_mb", "temperature_c", "power_w", "usage_state")
_PROCESS = ("pid", "mem_used_mb", "loginuid_user", "owner_user", "process_name", "process_type")


@dataclass(frozen=True)
class OldRun:
    """One life of the old daemon. interval_ms None: never recorded."""

    id: Optional[int]
    started_at: str
    started_ms: int
    interval_ms: Optional[int]


@dataclass(frozen=True)
class OldProcess:
    """As recorded; a name None: it could not be told. type: `compute` or `graphics`, None before types were kept."""

    pid: int
    memory_mb: Optional[int]
    login_user: Optional[str]
    owner_user: Optional[str]
    name: Optional[str]
    type: Optional[str]


@dataclass(frozen=True)
class OldCard:
    """One row of gpu_sample with its processes. Figures None: not recorded."""

    uuid: str
    util_pct: int
    index: Optional[int]
    memory_used_mb: Optional[int]
    temperature_c: Optional[int]
    power_w: Optional[int]
    usage_state: Optional[str]
    processes: tuple[OldProcess, ...] = ()


@dataclass(frozen=True)
class OldTick:
    """Rows of one sampling, written together. at: the time as it stands there. run_id None: belongs to no run."""

    at: str
    ts_ms: int
    run_id: Optional[int]
    cards: tuple[OldCard, ...]

    @property
    def is_point(self) -> bool:
        """Written by `gua sync-once`, which stands for no time: no run, though runs were kept by then."""
        return self.run_id is None and any(card.index is not None for card in self.cards)


class OldDatabase:
    """An open database of gpu-usage-audit. unreadable: rows met so far that make no sense."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._columns = {table: self._names(table) for table in ("host", "gpu_sample", "proc_sample", "gpu_device")}
        for table, column in _NEEDED.items():
            if column not in self._columns[table]:
                raise DatabaseUnusable(f"{shown(str(path), 200)} is no database of gpu-usage-audit")
        self.unreadable = 0

    @property
    def columns_of(self) -> str:
        """The version whose columns these are, for people."""
        cards, processes = self._columns["gpu_sample"], self._columns["proc_sample"]
        if "owner_user" in processes:
            return "1.7 or later"
        if "process_type" in processes:
            return "1.4 to 1.6"
        if self._columns["gpu_device"]:
            return "1.1 to 1.3"
        return "1.0.1 to 1.0.3" if "run_id" in cards else "1.0.0 or earlier"

    def host(self) -> tuple[Optional[str], Optional[str]]:
        """(name, driver version) of the host it was seen on last."""
        rows = self._rows("SELECT hostname, driver_version FROM host ORDER BY last_seen DESC LIMIT 1")
        return (rows[0][0], rows[0][1]) if rows else (None, None)

    def runs(self) -> dict[int, OldRun]:
        """The recorded runs by id."""
        if "run_id" not in self._columns["gpu_sample"] or not self._names("daemon_run"):
            return {}
        found = {}
        for run, started_at, seconds in self._rows("SELECT id, started_at, interval_seconds FROM daemon_run"):
            started_ms = parse_ms(started_at)
            if started_ms is not None:
                interval_ms = round(float(seconds) * 1000) if _is_number(seconds) and seconds > 0 else None
                found[int(run)] = OldRun(int(run), str(started_at), started_ms, interval_ms)
        return found

    def runs_with_states(self) -> frozenset[Optional[int]]:
        """Runs of a version that kept usage_state, so that a missing one says: the compute list could not be read."""
        if "usage_state" not in self._columns["gpu_sample"]:
            return frozenset()
        rows = self._rows("SELECT DISTINCT run_id FROM gpu_sample WHERE usage_state IS NOT NULL")
        return frozenset(row[0] for row in rows)

    def names(self) -> dict[str, tuple[Optional[str], Optional[int]]]:
        """(model, memory in MiB) by UUID; of cards whose model was recorded."""
        if not self._columns["gpu_device"]:
            return {}
        rows = self._rows("SELECT gpu_uuid, name, memory_total_mb FROM gpu_device")
        return {str(row[0]): (row[1], row[2] if _is_number(row[2]) and row[2] > 0 else None) for row in rows}

    def times_without_run(self) -> array[int]:
        """When samples without a run were taken, ascending, in milliseconds; of `sync-once` too."""
        where = " WHERE run_id IS NULL" if "run_id" in self._columns["gpu_sample"] else ""
        found: array[int] = array("q")
        for (at,) in self._connection.execute(f"SELECT DISTINCT ts FROM gpu_sample{where}"):
            ts_ms = parse_ms(at)
            if ts_ms is not None:
                found.append(ts_ms)
        return array("q", sorted(found))

    def first_time(self) -> Optional[str]:
        """The time of the oldest row, as it stands there."""
        rows = self._rows("SELECT ts FROM gpu_sample ORDER BY rowid LIMIT 1")
        return str(rows[0][0]) if rows else None

    def ticks(self) -> Iterator[OldTick]:
        """Samplings in the order they were written, without their processes: see `with_processes`."""
        waiting: list[Any] = []
        for row in self._card_rows():
            if waiting and row[1:3] != waiting[0][1:3]:
                yield from self._tick(waiting)
                waiting.clear()
            waiting.append(row)
        if waiting:
            yield from self._tick(waiting)

    def with_processes(self, tick: OldTick) -> OldTick:
        """The tick with the processes that were listed on its cards."""
        cards = (
            OldCard(**{**vars(card), "processes": self._processes(tick.at, tick.run_id, card.uuid)})
            for card in tick.cards
        )
        return OldTick(tick.at, tick.ts_ms, tick.run_id, tuple(cards))

    def _card_rows(self) -> Iterator[Sequence[Any]]:
        columns = ", ".join(self._or_null("gpu_sample", name) for name in ("ts", "run_id", *_CARD))
        query = f"SELECT rowid, {columns} FROM gpu_sample WHERE rowid > ? ORDER BY rowid LIMIT {_ROWS}"
        last = -(1 << 62)
        while True:
            rows = self._rows(query, (last,))
            yield from rows
            if len(rows) < _ROWS:
                return
            last = rows[-1][0]

    def _tick(self, rows: Sequence[Sequence[Any]]) -> Iterator[OldTick]:
        ts_ms = parse_ms(rows[0][1])
        cards = {str(row[3]): _card(row[3:]) for row in rows if _is_number(row[4])}
        self.unreadable += len(rows) if ts_ms is None else len(rows) - len(cards)
        if ts_ms is not None and cards:
            yield OldTick(str(rows[0][1]), ts_ms, rows[0][2], tuple(cards.values()))

    def _processes(self, at: str, run: Optional[int], uuid: str) -> tuple[OldProcess, ...]:
        columns = ", ".join(self._or_null("proc_sample", name) for name in _PROCESS)
        same_run = " AND run_id IS ?" if "run_id" in self._columns["proc_sample"] else ""
        values = (uuid, at, run) if same_run else (uuid, at)
        query = f"SELECT {columns} FROM proc_sample WHERE gpu_uuid = ? AND ts = ?{same_run} ORDER BY rowid"
        return tuple(_process(row) for row in self._rows(query, values))

    def _or_null(self, table: str, column: str) -> str:
        return column if column in self._columns[table] else "NULL"

    def _names(self, table: str) -> frozenset[str]:
        return frozenset(row[1] for row in self._rows(f"PRAGMA table_info({table})"))

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(query, values).fetchall()


@contextlib.contextmanager
def open_old(path: Path) -> Iterator[OldDatabase]:
    """The database at `path`, while its daemon writes it or without permission to write; nothing is changed.

    Raises DatabaseMissing; DatabaseUnusable: not readable, or not of gpu-usage-audit.
    """
    from gua.store.database import open_foreign

    with open_foreign(path) as connection:
        yield OldDatabase(connection, path)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and value == value


def _whole(value: Any) -> Optional[int]:
    return int(value) if _is_number(value) else None


def _word(value: Any) -> Optional[str]:
    return str(value) if isinstance(value, str) and value else None


def _card(row: Sequence[Any]) -> OldCard:
    uuid, util, index, used, celsius, watts, state = row
    return OldCard(str(uuid), int(util), _whole(index), _whole(used), _whole(celsius), _whole(watts), _word(state))


def _process(row: Sequence[Any]) -> OldProcess:
    pid, memory, login, owner, name, kind = row
    number = _whole(pid)
    return OldProcess(
        0 if number is None else number, _whole(memory), _word(login), _word(owner), _word(name), _word(kind)
    )
