"""Raw ticks judged again under other rules: what the sums would have been had those been in force.

One pass over the ticks serves many rules. Each card's ticks are gathered into runs (runs.py); only then is each rule
asked, run by run, so that the work grows with what changed and not with rules times ticks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

from gua.classify import classify
from gua.coverage import SLOT_MS, Span, clip, pieces
from gua.errors import UsageError
from gua.model import Rule
from gua.store.codes import VERDICT_CODE
from gua.store.evidence import unpack_evidence
from gua.store.packing import NO_UTIL, POWER_AT, UTIL_AT, UTIL_MAX_AT, VERDICT_MASK
from gua.store.raw import RawHold, holds_by_device, unattributed_user
from gua.store.runs import RuleSums, Run, TickPart
from gua.store.sample_id import DEVICE_BITS, sample_ids
from gua.store.session import Session
from gua.store.sums import WindowSums
from gua.store.timeline import Timeline
from gua.units import to_iso

_DEVICE_MASK = (1 << DEVICE_BITS) - 1
# Readings up to the utilisation, with the verdict that says why a card was absent: all that a rule looks at.
_JUDGED_MASK = (1 << UTIL_MAX_AT) - 1

_Judged = tuple[tuple[int, ...], bool]
"""A verdict's code for each rule, and whether the lists of processes could be read."""


# Ticks read at once, in a second or two however many cards there are: what is read under one view is short.
CHUNK_TICKS = 4096


def _nothing() -> None:
    pass


def rejudge(
    session: Session, windows: Sequence[Span], rules: Sequence[Rule], between: Callable[[], None] = _nothing
) -> list[WindowSums]:
    """The sums over disjoint windows as each of the rules would have had them, in the order of `rules`.

    Every card is judged by the rule, also one whose model has its own. `WindowSums.rules` stays empty.
    between: called now and then, when no query is open, so that the view may be renewed: raw ticks only come and go.
    Raises UsageError when a window reaches beyond the oldest raw tick.
    """
    windows = [window for window in windows if window[0] < window[1]]
    judges = [RuleSums(n, rule.long_idle_s * 1000, unattributed_user(session)) for n, rule in enumerate(rules)]
    if windows:
        since_ms = min(start for start, _ in windows)
        _refuse_gone(session, since_ms)
        one_pass = _Pass(session, windows, rules, judges)
        for _ in one_pass.chunks():
            between()
            _refuse_gone(session, since_ms)
    return [judge.finish() for judge in judges]


def _refuse_gone(session: Session, since_ms: int) -> None:
    raw_since_ms = session.rows("SELECT max(raw_since_ms) FROM store")[0][0]
    if raw_since_ms is not None and since_ms < raw_since_ms:
        raise UsageError(
            f"other rules need single samples, and those before {to_iso(raw_since_ms)} are gone: "
            f"ask from then on, --since {to_iso(raw_since_ms)}"
        )


class _Pass:
    """One walk over ticks and samples, both in the order they were stored."""

    def __init__(
        self, session: Session, windows: Sequence[Span], rules: Sequence[Rule], judges: Sequence[RuleSums]
    ) -> None:
        self._session = session
        self._windows = windows
        self._rules = rules
        self._judges = judges
        self._judged: dict[int, _Judged] = {}
        self._same: dict[_Judged, _Judged] = {}
        self._mig = {row[0] for row in session.rows("SELECT id FROM device WHERE mig_parent_uuid IS NOT NULL")}
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
                device = sample[0] & _DEVICE_MASK
                card = self._cards.get(device)
                if card is None:
                    card = self._cards[device] = _Card(device, Timeline(self._holds.get(device, ())), self._close)
                card.take(tick, self._judge(device, sample[1], sample[2]), sample[2] >> POWER_AT)
                sample = next(samples, None)

    def _interrupt(self) -> None:
        """A tick of quite another time came in between: no stretch goes on over it."""
        for card in self._cards.values():
            card.end_ms = None

    def _reach(self) -> Span:
        """The windows and so much around them that a stretch is known to be long, or not."""
        longest_cover_ms = int(self._session.rows("SELECT coalesce(max(longest_cover_ms), 0) FROM store")[0][0])
        long_ms = max(rule.long_idle_s for rule in self._rules) * 1000 if self._rules else 0
        since_ms = min(start for start, _ in self._windows) - long_ms - longest_cover_ms - 1
        return since_ms, max(end for _, end in self._windows) + long_ms

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
        asked = [clip(span, window) for window in self._windows for span in spans]
        inside = any(since <= ts_ms < until for since, until in self._windows)
        return TickPart(
            id=tick,
            start_ms=spans[0][0] if spans else None,
            end_ms=spans[-1][1] if spans else ts_ms,
            reach_ms=cover_ms,
            pieces=tuple(pieces(asked)),
            counted_in=ts_ms // SLOT_MS if inside else None,
        )

    def _judge(self, device: int, occupancy: int, readings: int) -> _Judged:
        key = occupancy << UTIL_MAX_AT | readings & _JUDGED_MASK
        found = self._judged.get(key)
        if found is None:
            judged = self._judge_anew(device, occupancy, readings)
            found = self._judged[key] = self._same.setdefault(judged, judged)
        return found

    def _judge_anew(self, device: int, occupancy: int, readings: int) -> _Judged:
        flags, holders, held_mb, unattributed_mb = self._session.rows(
            "SELECT flags, holders, held_mb, unattributed_mb FROM occupancy WHERE id = ?", (occupancy,)
        )[0]
        util = readings >> UTIL_AT & NO_UTIL
        evidence = unpack_evidence(
            readings & VERDICT_MASK,
            flags,
            util_pct=None if util == NO_UTIL else util,
            holders=holders,
            held_mb=held_mb,
            unattributed_mb=unattributed_mb,
            mig=device in self._mig,
        )
        return tuple(VERDICT_CODE[classify(evidence, rule)] for rule in self._rules), holders is not None

    def _close(self, run: Run) -> None:
        totals = run.totals()
        for judge in self._judges:
            judge.take(run, totals)


class _Card:
    """One card's walk through the ticks. end_ms: of the last time covered, None where a stretch cannot go on."""

    def __init__(self, device: int, holds: Timeline[Any], done: Callable[[Run], None]) -> None:
        self._device = device
        self._done = done
        self._cuts = holds.cuts
        self._users = [tuple(sorted({hold.user for hold in present})) for present in holds.present]
        self._place = 0
        self._run: Optional[Run] = None
        self._judged: Optional[_Judged] = None
        self.end_ms: Optional[int] = None

    def take(self, tick: TickPart, judged: _Judged, power_code: int) -> None:
        """One card-tick; power_code: tenths of a watt and one, 0 where unknown."""
        while self._place < len(self._cuts) and self._cuts[self._place] <= tick.id:
            self._place += 1
        users = self._users[self._place] if judged[1] else ()
        goes_on = tick.start_ms is None or (
            self.end_ms is not None and 0 <= tick.start_ms - self.end_ms <= tick.reach_ms
        )
        run = self._run
        if run is None or not goes_on or judged is not self._judged or users != run.users:
            self.close()
            run = self._run = Run(self._device, judged[0], users, goes_on=goes_on)
            self._judged = judged
        run.add(tick, power_code - 1 if power_code else None)
        if tick.start_ms is not None:
            self.end_ms = tick.end_ms

    def close(self) -> None:
        if self._run is not None:
            self._done(self._run)
        self._run = None
