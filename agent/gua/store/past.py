"""Ticks that another recorder took, written into this history without touching its present.

They get numbers below zero, so that the order of ids stays the order of time: what is newest stays newest, whoever
wrote last. Each source fills a block of its own. Nothing is left open between two transactions: a hold or stretch that
goes on is found again by its last tick, so that an import that was killed goes on as if it had not been, and a daemon
that writes in between never takes it for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from gua.coverage import SLOT_MS
from gua.model import CardReading, CardTick, Rule, Tick
from gua.store.devices import DeviceRow, Devices
from gua.store.holds import Holds
from gua.store.present import Present
from gua.store.sample_id import DEVICE_BITS
from gua.store.session import Session, TickTime
from gua.store.stretches import Stretches
from gua.store.ticks import KnownRule, TickWriter

if TYPE_CHECKING:
    from gua.store.writer import StoreWriter

KIND = "import"

# Ids of one source: at one tick a second they last for eight years.
BLOCK = 1 << 28


@dataclass(frozen=True)
class PastRun:
    """One life of another recorder. key: names it for ever, and stands where a boot's id would. Milliseconds."""

    key: str
    hostname: str
    interval_ms: int
    recorder: str
    driver_version: Optional[str]
    started_ms: int


@dataclass(frozen=True)
class PastCount:
    """What became of a batch: ticks and card-ticks stored, and ticks left out because their time was counted before."""

    ticks: int = 0
    samples: int = 0
    counted_before: int = 0


class PastIndex:
    """What is here of other recorders' history. Reads only."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._runs: dict[str, tuple[int, int]] = {
            row[0]: (row[1], row[2])
            for row in session.rows(
                "SELECT boot_id, run.id, coalesce(ended_ms, started_ms) FROM run JOIN boot ON boot.id = run.boot"
                " WHERE run.id < 0"
            )
        }

    def is_stored(self, key: str, ts_ms: int) -> bool:
        """Whether this tick of this run was taken in before; also one whose raw tick is gone since."""
        known = self._runs.get(key)
        if known is None:
            return False
        run, ended_ms = known
        if self._session.rows("SELECT 1 FROM tick WHERE ts_ms = ? AND run = ?", (ts_ms, run)):
            return True
        # asked last and anew, for a daemon may remove raw ticks meanwhile
        raw_since_ms = self._session.rows("SELECT max(raw_since_ms) FROM store")[0][0]
        return raw_since_ms is not None and ts_ms < raw_since_ms and ts_ms <= ended_ms

    def last_tick(self, keys: Iterable[str]) -> Optional[int]:
        """The newest tick here of any of these runs; None when there is none, or all are gone."""
        runs = [self._runs[key][0] for key in keys if key in self._runs]
        marks = ", ".join("?" * len(runs))
        row = self._session.rows(f"SELECT max(id) FROM tick WHERE run IN ({marks})", runs)[0]
        return None if row[0] is None else int(row[0])


class PastTickWriter(TickWriter):
    """Writes one source's ticks. block_start: its first id. until_rev: newest revision before this import began."""

    def __init__(self, session: Session, block_start: int, until_rev: int) -> None:
        super().__init__(session)
        in_block = (block_start, block_start + BLOCK - 1)
        last = session.rows("SELECT max(id) FROM tick WHERE id BETWEEN ? AND ?", in_block)[0][0]
        self._next_tick = block_start if last is None else last + 1
        self._devices = PastDevices(session)
        self._present = NoPresent(session)
        self._holds = PastHolds(session, last)
        self._stretches = PastStretches(session, last)
        self._until_rev = until_rev
        self._runs: dict[str, int] = {}
        self._raw_since_ms = session.rows("SELECT max(raw_since_ms) FROM store")[0][0]

    def run_id(self, run: PastRun, store: int, rule: int) -> int:
        """The row of this run, made where it is new."""
        if run.key not in self._runs:
            self._runs[run.key] = self._find_run(run) or self._insert_run(run, store, rule)
        return self._runs[run.key]

    def _find_run(self, run: PastRun) -> Optional[int]:
        boot = self.people.boot(run.key)
        rows = self._session.rows("SELECT id FROM run WHERE boot = ? AND id < 0", (boot,))
        return int(rows[0][0]) if rows else None

    def _insert_run(self, run: PastRun, store: int, rule: int) -> int:
        number = int(self._session.rows("SELECT min(0, coalesce(min(id), 0)) - 1 FROM run")[0][0])
        return self._session.insert(
            "run",
            id=number,
            store=store,
            boot=self.people.boot(run.key),
            rule=rule,
            kind=KIND,
            hostname=run.hostname,
            interval_ms=run.interval_ms,
            agent_version=run.recorder,
            driver_version=run.driver_version,
            started_ms=run.started_ms,
            rev=self._session.rev,
        )

    def note_end(self, run: int, ended_ms: int) -> None:
        """How far this run was taken in."""
        self._session.connection.execute(
            "UPDATE run SET ended_ms = max(coalesce(ended_ms, ?), ?), rev = ? WHERE id = ?",
            (ended_ms, ended_ms, self._session.rev, run),
        )

    def was_counted(self, tick: Tick) -> bool:
        """Whether the tick's quarter-hours were counted before and their raw ticks are gone, so overlap is unknown."""
        if self._raw_since_ms is None or tick.ts_ms >= self._raw_since_ms:
            return False
        slots = (tick.ts_ms // SLOT_MS, (tick.ts_ms + max(0, tick.cover_ms - 1)) // SLOT_MS)
        return bool(
            self._session.rows(
                "SELECT 1 FROM tick_slot WHERE slot BETWEEN ? AND ? AND rev <= ? LIMIT 1", (*slots, self._until_rev)
            )
        )

    def retire_absent(self, newest: Iterable[str]) -> list[str]:
        """Expect cards that only the past knows no longer than it saw them. Gives their UUIDs.

        newest: UUIDs of the cards at its newest tick; they stay expected where nobody looked here since.
        """
        session = self._session
        kept = set() if session.rows("SELECT 1 FROM tick WHERE id >= 0 LIMIT 1") else set(newest)
        ends = session.rows(
            "SELECT device.id, uuid, retired_at_ms, max(ts_ms + cover_ms) FROM sample"
            f" JOIN tick ON tick.id = sample.id >> {DEVICE_BITS}"
            f" JOIN device ON device.id = sample.id & {(1 << DEVICE_BITS) - 1}"
            " WHERE sample.id < 0 AND device.id NOT IN (SELECT device FROM card_now) GROUP BY device.id"
        )
        gone = [row for row in ends if row[1] not in kept and (row[2] is None or row[2] < row[3])]
        session.connection.executemany(
            "UPDATE device SET retired_at_ms = ?, rev = ? WHERE id = ?",
            [(end_ms, session.rev, device) for device, _, _, end_ms in gone],
        )
        return [uuid for _, uuid, _, _ in gone]


class PastDevices(Devices):
    """Cards as another recorder knew them: what is known of them here already stands."""

    def note(
        self, cards: tuple[CardTick, ...], mig_parents: tuple[str, ...], ts_ms: int
    ) -> list[tuple[DeviceRow, CardTick]]:
        return [(self._learn(card.reading, ts_ms), card) for card in cards]

    def _take_over(self, row: DeviceRow, reading: CardReading) -> None:
        row.index = reading.index if row.index is None else row.index
        row.name = row.name or reading.name
        row.memory_total_mb = reading.memory_total_mb if row.memory_total_mb is None else row.memory_total_mb


class NoPresent(Present):
    """The past is not now."""

    def note(self, device: int, card: CardTick, time: TickTime) -> Optional[int]:
        return None


class PastHolds(Holds):
    """Holds that are never open on disk. last_tick: of the import; holds that reach to it go on."""

    def __init__(self, session: Session, last_tick: Optional[int]) -> None:
        super().__init__(session, f"NOT is_open AND last_tick = {last_tick}" if last_tick is not None else "0")

    def flush(self) -> None:
        for hold in self._changed.values():
            hold.is_open = False
        super().flush()


class PastStretches(Stretches):
    """Stretches that are never open on disk, like PastHolds."""

    def __init__(self, session: Session, last_tick: Optional[int]) -> None:
        super().__init__(session, f"NOT is_open AND last_tick = {last_tick}" if last_tick is not None else "0")

    def flush(self) -> None:
        going_on = [(one.id,) for one in self._changed.values() if one.is_open]
        super().flush()
        self._session.connection.executemany("UPDATE idle_stretch SET is_open = 0 WHERE id = ?", going_on)


def block_of(session: Session, last_tick: Optional[int]) -> int:
    """First id of the block that goes on after `last_tick`; of a new one below all others when that is None."""
    if last_tick is not None:
        return last_tick // BLOCK * BLOCK
    lowest = int(session.rows("SELECT min(0, coalesce(min(id), 0)) FROM tick")[0][0])
    return (lowest // BLOCK - 1) * BLOCK


class PastWriter:
    """Takes in one source's ticks, in the order they were taken.

    keys: of all its runs. rule: judges cards without one of their own.
    """

    def __init__(self, writer: StoreWriter, keys: Iterable[str], rule: Rule) -> None:
        self._writer = writer
        self._rule = rule
        with writer.reading() as session:
            self._index = PastIndex(session)
            self._block = block_of(session, self._index.last_tick(keys))
            self._until_rev = int(session.rows("SELECT max(rev) FROM store")[0][0])

    def is_stored(self, key: str, ts_ms: int) -> bool:
        """See PastIndex; asked as things were when this writer was made."""
        with self._writer.reading():
            return self._index.is_stored(key, ts_ms)

    def write(self, batch: Sequence[tuple[PastRun, Tick]]) -> PastCount:
        """Store a batch, all or nothing. Raises DatabaseUnusable."""
        with self._writer.transaction_with(self._make) as (ticks, store, known_rule):
            rule = known_rule(self._rule)
            return _write(ticks, batch, lambda run: ticks.run_id(run, store, rule.id), rule, known_rule)

    def finish(self, newest: Iterable[str]) -> list[str]:
        """See retire_absent."""
        with self._writer.transaction_with(self._make) as (ticks, _, _):
            return ticks.retire_absent(newest)

    def _make(self, session: Session) -> PastTickWriter:
        return PastTickWriter(session, self._block, self._until_rev)


def _write(
    ticks: PastTickWriter,
    batch: Sequence[tuple[PastRun, Tick]],
    run_id: Callable[[PastRun], int],
    rule: KnownRule,
    known_rule: Callable[[Rule], KnownRule],
) -> PastCount:
    reached: dict[int, int] = {}
    stored = samples = counted = 0
    for run, tick in batch:
        number = run_id(run)
        reached[number] = max(reached.get(number, 0), tick.ts_ms)
        if ticks.was_counted(tick):
            counted += 1
            continue
        ticks.write(tick, number, lambda card: rule if card.rule is None else known_rule(card.rule))
        stored, samples = stored + 1, samples + len(tick.cards)
    for number, ended_ms in reached.items():
        ticks.note_end(number, ended_ms)
    return PastCount(stored, samples, counted)
