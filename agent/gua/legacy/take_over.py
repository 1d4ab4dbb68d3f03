"""A database of gpu-usage-audit into ours: what is new of it, in batches, each whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Optional, Protocol

from gua.legacy.convert import Recorder, to_tick
from gua.legacy.source import OldDatabase, OldRun, OldTick
from gua.legacy.times import DEFAULT_INTERVAL_MS, Spacing
from gua.model import Tick
from gua.rulebook import RuleBook
from gua.store.past import PastCount, PastRun

if TYPE_CHECKING:
    from gua.store.past import PastWriter

RECORDER = "gpu-usage-audit"

# Card-ticks in one transaction: a daemon that writes beside waits for a fraction of a second.
_BATCH_SAMPLES = 2_000


class Past(Protocol):
    """What an import needs of the store; a dry run asks and does not write."""

    def is_stored(self, key: str, ts_ms: int) -> bool: ...


class Nothing:
    """A store that is not there yet."""

    def is_stored(self, key: str, ts_ms: int) -> bool:
        return False


@dataclass
class Taken:
    """What an import did, growing. Times in Unix UTC milliseconds of ticks that are here now, None without any.

    known: ticks that were here before. counted_before: ticks left out, for their quarter-hours were counted and their
    raw ticks are gone. inferred_ms: intervals told from spacing. points: ticks of `sync-once`, which stand for no time.
    unlisted: card-ticks whose process list failed. ungraphed: those of versions that knew no graphics processes.
    unmeasured: those without the card's memory. retired: cards no longer expected.
    """

    ticks: int = 0
    samples: int = 0
    processes: int = 0
    known: int = 0
    counted_before: int = 0
    unreadable: int = 0
    points: int = 0
    unlisted: int = 0
    ungraphed: int = 0
    unmeasured: int = 0
    from_ms: Optional[int] = None
    until_ms: Optional[int] = None
    cards: set[str] = field(default_factory=set)
    users: set[str] = field(default_factory=set)
    intervals_ms: set[int] = field(default_factory=set)
    inferred_ms: set[int] = field(default_factory=set)
    retired: list[str] = field(default_factory=list)

    def note(self, old: OldTick, tick: Tick, *, has_states: bool) -> None:
        """Take a tick's figures in."""
        self.from_ms = tick.ts_ms if self.from_ms is None else min(self.from_ms, tick.ts_ms)
        end_ms = tick.ts_ms + tick.cover_ms
        self.until_ms = end_ms if self.until_ms is None else max(self.until_ms, end_ms)
        self.points += old.is_point
        for card in tick.cards:
            self.cards.add(card.reading.uuid)
            self.users.update(holder.identity.user for holder in card.holders)
            self.processes += len(card.holders)
            self.unlisted += card.reading.processes is None
            self.ungraphed += not has_states
            self.unmeasured += card.reading.memory_used_mb is None

    def add(self, count: PastCount) -> None:
        self.ticks += count.ticks
        self.samples += count.samples
        self.counted_before += count.counted_before


class Import:
    """One run over an old database. rules: judge its samples. on_batch: told how many ticks were looked at."""

    def __init__(self, old: OldDatabase, rules: RuleBook, hostname: str) -> None:
        self._old = old
        self._rules = rules
        self._hostname = hostname
        self._runs = old.runs()
        self._states = old.runs_with_states()
        self._names = old.names()
        self._spacing = Spacing(old.times_without_run())
        self._first_time = old.first_time() or ""
        self._driver = old.host()[1]
        self.taken = Taken()

    def keys(self) -> list[str]:
        """Names of all runs it may hold."""
        return [
            self._key(None, point=False),
            self._key(None, point=True),
            *(self._key(run, point=False) for run in self._runs),
        ]

    def into(self, past: PastWriter, on_batch: Callable[[int], None] = lambda looked_at: None) -> Taken:
        """Take in what is new. Raises DatabaseUnusable; what was stored until then stays, and is known next time."""
        for batch in self.batches(past):
            self.taken.add(past.write(batch))
            on_batch(self.taken.ticks)
        self.taken.retired = past.finish(self._newest)
        return self._done()

    def look(self, past: Past) -> Taken:
        """What `into` would take, with nothing written."""
        for batch in self.batches(past):
            self.taken.add(PastCount(len(batch), sum(len(tick.cards) for _, tick in batch)))
        return self._done()

    def batches(self, past: Past) -> Iterator[list[tuple[PastRun, Tick]]]:
        """New ticks in the order they were taken."""
        batch: list[tuple[PastRun, Tick]] = []
        samples = 0
        self._newest: tuple[str, ...] = ()
        newest_ms = 0
        for old in self._old.ticks():
            if old.ts_ms >= newest_ms:
                newest_ms, self._newest = old.ts_ms, tuple(card.uuid for card in old.cards)
            run = self._run_of(old)
            if past.is_stored(run.key, old.ts_ms):
                self.taken.known += 1
                continue
            batch.append((run, self._converted(old, run)))
            samples += len(old.cards)
            if samples >= _BATCH_SAMPLES:
                yield batch
                batch, samples = [], 0
        if batch:
            yield batch

    def _done(self) -> Taken:
        self.taken.unreadable = self._old.unreadable
        return self.taken

    def _converted(self, old: OldTick, run: PastRun) -> Tick:
        has_states = old.run_id in self._states if not old.is_point else old.cards[0].usage_state is not None
        cover_ms = self._cover_ms(old)
        whole = self._old.with_processes(old)
        tick = to_tick(whole, Recorder(run.key, cover_ms, has_states, self._names, self._rules))
        self.taken.note(whole, tick, has_states=has_states)
        return tick

    def _cover_ms(self, old: OldTick) -> int:
        if old.is_point:
            return 0
        run = self._runs.get(old.run_id) if old.run_id is not None else None
        if run is not None and run.interval_ms is not None:
            self.taken.intervals_ms.add(run.interval_ms)
            return run.interval_ms
        cover_ms = self._spacing.at(old.ts_ms) if old.run_id is None else DEFAULT_INTERVAL_MS
        self.taken.inferred_ms.add(cover_ms)
        return cover_ms

    def _run_of(self, old: OldTick) -> PastRun:
        run = self._runs.get(old.run_id) if old.run_id is not None else None
        interval_ms = self._spacing.usual() if run is None else run.interval_ms or DEFAULT_INTERVAL_MS
        return PastRun(
            key=self._key(old.run_id, point=old.is_point),
            hostname=self._hostname,
            interval_ms=0 if old.is_point else interval_ms,
            recorder=RECORDER,
            driver_version=self._driver,
            started_ms=old.ts_ms if run is None else run.started_ms,
        )

    def _key(self, run_id: Optional[int], *, point: bool) -> str:
        """What the run is called in any copy of this file, also one that has grown."""
        run: Optional[OldRun] = self._runs.get(run_id) if run_id is not None else None
        what = f"run {run_id} of {run.started_at}" if run else f"run {run_id} since {self._first_time}"
        if run_id is None:
            what = f"{'single samples' if point else 'no run'} since {self._first_time}"
        return f"{RECORDER} {self._hostname} {what}"
