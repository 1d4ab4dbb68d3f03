"""Raw ticks judged again under another rule: what the sums would have been had it been in force.

Each card's ticks are gathered into runs (runs.py) in which nothing changed; sums are made run by run, so that most of
the work grows with what changed and not with ticks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

from gua.coverage import SLOT_MS, Span, clip, pieces
from gua.errors import UsageError
from gua.model import Rule
from gua.store.judge import DEVICE_MASK, Judge, Judged
from gua.store.packing import POWER_AT
from gua.store.raw import RawHold, holds_by_device, unattributed_user
from gua.store.runs import NOBODY, Present, Rejudged, RuleSums, Run, TickPart
from gua.store.sample_id import sample_ids
from gua.store.session import Session
from gua.store.timeline import Timeline
from gua.units import to_iso

# Ticks read at once, in a second or two however many cards there are: what is read under one view is short.
CHUNK_TICKS = 4096


def _nothing() -> None:
    pass


def rejudge(session: Session, window: Span, rule: Rule, between: Callable[[], None] = _nothing) -> Rejudged:
    """The sums over the window as the rule would have had them.

    Every card is judged by the rule, also one whose model has its own. `WindowSums.rules` stays empty.
    between: called now and then, when no query is open, so that the view may be renewed: raw ticks only come and go.
    Raises UsageError when the window reaches beyond the oldest raw tick.
    """
    found = RuleSums(window, rule.long_idle_s * 1000, unattributed_user(session))
    _refuse_gone(session, window[0])
    for _ in _Pass(session, window, rule, found).chunks():
        between()
        _refuse_gone(session, window[0])
    return found.finish()


def _refuse_gone(session: Session, since_ms: int) -> None:
    raw_since_ms = session.rows("SELECT max(raw_since_ms) FROM store")[0][0]
    if raw_since_ms is not None and since_ms < raw_since_ms:
        raise UsageError(
            f"other rules need single samples, and those before {to_iso(raw_since_ms)} are gone: "
            f"ask from then on, --since {to_iso(raw_since_ms)}"
        )


class _Pass:
    """One walk over ticks and samples, both in the order they were stored."""

    def __init__(self, session: Session, window: Span, rule: Rule, found: RuleSums) -> None:
        self._session = session
        self._window = window
        self._long_ms = rule.long_idle_s * 1000
        self._judge = Judge(session, [rule])
        self._close = found.take
        self._cards: dict[int, _Card] = {}
        self._holds: dict[int, list[RawHold]] = {}
        self._before: Optional[int] = None

    def chunks(self) -> Iterator[None]:
        """Walk, and stop after each chunk."""
        reach = self._reach()
        first, last = self._session.rows("SELECT min(id), max(id) FROM tick WHERE ts_ms > ? AND ts_ms < ?", reach)[0]
        if first is None:
            return
        self._holds = holds_by_device(self._session, first, last)
        for start in range(first, last + 1, CHUNK_TICKS):
            end = min(last, start + CHUNK_TICKS - 1)
            self._walk(list(self._ticks(reach, start, end)), self._samples(start, end))
            yield
        for card in self._cards.values():
            card.close()

    def _samples(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        query = "SELECT id, occupancy, readings FROM sample WHERE id BETWEEN ? AND ? ORDER BY id"
        return iter(self._session.rows(query, sample_ids(first, last)))

    def _walk(self, ticks: Sequence[tuple[TickPart, bool]], samples: Iterator[tuple[int, int, int]]) -> None:
        sample = next(samples, None)
        for tick, follows in ticks:
            if not follows:
                self._interrupt()
            low, high = sample_ids(tick.id, tick.id)
            while sample is not None and sample[0] < low:
                sample = next(samples, None)
            while sample is not None and sample[0] <= high:
                device = sample[0] & DEVICE_MASK
                card = self._cards.get(device)
                if card is None:
                    card = self._cards[device] = _Card(device, Timeline(self._holds.get(device, ())), self._close)
                card.take(tick, self._judge.of(device, sample[1], sample[2]), sample[2] >> POWER_AT)
                sample = next(samples, None)

    def _interrupt(self) -> None:
        """A tick of quite another time came in between: no stretch goes on over it."""
        for card in self._cards.values():
            card.end_ms = None

    def _reach(self) -> Span:
        """The window and so much around it that a stretch is known to be long, or not."""
        longest_cover_ms = int(self._session.rows("SELECT coalesce(max(longest_cover_ms), 0) FROM store")[0][0])
        return self._window[0] - self._long_ms - longest_cover_ms - 1, self._window[1] + self._long_ms

    def _ticks(self, reach: Span, first: int, last: int) -> Iterator[tuple[TickPart, bool]]:
        """Ticks in the order they were stored, and whether each was stored right after the one before."""
        more: defaultdict[int, list[Span]] = defaultdict(list)
        for tick, start, end in self._session.rows(
            "SELECT tick, from_ms, until_ms FROM tick_fragment JOIN tick ON tick.id = tick_fragment.tick"
            " WHERE tick.id BETWEEN ? AND ?",
            (first, last),
        ):
            more[tick].append((start, end))
        for row in self._session.rows(
            "SELECT id, ts_ms, cover_ms, ts_ms + cover_from, ts_ms + cover_until FROM tick"
            " WHERE id BETWEEN ? AND ? AND +ts_ms > ? AND +ts_ms < ? ORDER BY id",
            (first, last, *reach),
        ):
            yield self._part(row, more.get(row[0], [])), self._before in (None, row[0] - 1)
            self._before = row[0]

    def _part(self, row: Sequence[Any], more: Sequence[Span]) -> TickPart:
        tick, ts_ms, cover_ms, start, end = row
        spans = sorted([(start, end), *more]) if start < end else []
        asked = [clip(span, self._window) for span in spans]
        inside = self._window[0] <= ts_ms < self._window[1]
        return TickPart(
            id=tick,
            start_ms=spans[0][0] if spans else None,
            end_ms=spans[-1][1] if spans else ts_ms,
            reach_ms=cover_ms,
            pieces=tuple(pieces(asked)),
            counted_in=ts_ms // SLOT_MS if inside else None,
        )


class _Card:
    """One card's walk through the ticks. end_ms: of the last time covered, None where a stretch cannot go on."""

    def __init__(self, device: int, holds: Timeline[Any], done: Callable[[Run], None]) -> None:
        self._device = device
        self._done = done
        self._cuts = holds.cuts
        self._present = [_present(there) for there in holds.present]
        self._place = 0
        self._run: Optional[Run] = None
        self.end_ms: Optional[int] = None

    def take(self, tick: TickPart, judged: Judged, power_code: int) -> None:
        """One card-tick; power_code: tenths of a watt and one, 0 where unknown."""
        while self._place < len(self._cuts) and self._cuts[self._place] <= tick.id:
            self._place += 1
        (verdict,), listed = judged
        present = self._present[self._place] if listed else NOBODY
        goes_on = tick.start_ms is None or (
            self.end_ms is not None and 0 <= tick.start_ms - self.end_ms <= tick.reach_ms
        )
        run = self._run
        if run is None or not goes_on or verdict != run.verdict or present is not run.present:
            self.close()
            run = self._run = Run(self._device, verdict, present, goes_on=goes_on)
        run.add(tick, power_code - 1 if power_code else None)
        if tick.start_ms is not None:
            self.end_ms = tick.end_ms

    def close(self) -> None:
        if self._run is not None:
            self._done(self._run)
        self._run = None


def _present(holds: Sequence[RawHold]) -> Present:
    return Present(tuple(sorted({hold.user for hold in holds})), tuple(hold.id for hold in holds))
