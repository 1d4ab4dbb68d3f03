"""Raw ticks of the store read back as samples to credit: for the ends of windows. As gua.store.raw does on a host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from gua.coverage import SLOT_MS, Span, clip, pieces
from gua.model import UserSource
from gua.store.codes import GRAPHICS, IDLE_HELD, USER_SOURCE_CODE
from gua.store.credit import Credits, Sample
from gua.store.raw import RawTick, id_runs
from gua.store.sums import WindowSums
from gua_fleet.store.session import Session

_Lives = dict[int, list[tuple[int, int, int]]]
"""By device: (first tick, last tick, person) of what was there between two ticks, both included."""


def add_raw(session: Session, history: int, window: Span, sums: WindowSums) -> None:
    """Add the part of a history's raw ticks that lies in the window; superseded slots are left out."""
    gone = {slot for (slot,) in session.rows("SELECT slot FROM superseded WHERE history = ?", (history,))}
    ticks = list(_ticks_touching(session, history, window))
    counted = {tick.id for tick in ticks if window[0] <= tick.ts_ms < window[1] and tick.ts_ms // SLOT_MS not in gone}
    covered = _covered(ticks, window)
    found = Credits()
    for tick, sample in _samples(session, history, ticks):
        spans = tuple(piece for piece in pieces(covered.get(tick.id, ())) if piece[0] not in gone)
        found.add(sample, spans, tick.ts_ms // SLOT_MS if tick.id in counted else None)
    sums.add_credits(found)
    sums.add_ticks(tick for tick in ticks if tick.id in counted)


def _covered(ticks: Iterable[RawTick], window: Span) -> dict[int, list[Span]]:
    """What each tick covers in the window, by its id: no time twice, whatever a host says of two of them."""
    found: defaultdict[int, list[Span]] = defaultdict(list)
    until_ms = window[0]
    spans = ((*clip(span, window), tick.id) for tick in ticks for span in tick.spans)
    for start, end, number in sorted(spans):
        if max(start, until_ms) < end:
            found[number].append((max(start, until_ms), end))
            until_ms = end
    return found


def _ticks_touching(session: Session, history: int, window: Span) -> Iterator[RawTick]:
    longest = int(session.value("SELECT coalesce(max(cover_ms), 0) FROM tick_day WHERE history = ?", (history,)))
    bounds = (history, window[0] - longest - 1, window[1])
    where = "history = ? AND ts_ms > ? AND ts_ms < ?"
    more: defaultdict[int, list[Span]] = defaultdict(list)
    for tick, start, end in session.rows(
        "SELECT tick, from_ms, until_ms FROM tick_fragment WHERE history = ?"
        f" AND tick IN (SELECT id FROM tick WHERE {where})",
        (history, *bounds),
    ):
        more[tick].append((start, end))
    for tick, ts_ms, status, cover_ms, cover_from, cover_until in session.rows(
        f"SELECT id, ts_ms, status, cover_ms, cover_from, cover_until FROM tick WHERE {where} ORDER BY id", bounds
    ):
        first = (ts_ms + cover_from, ts_ms + cover_until)
        spans = tuple(sorted([first, *more[tick]])) if first[0] < first[1] else ()
        yield RawTick(tick, ts_ms, status, cover_ms, spans)


def _samples(session: Session, history: int, ticks: Iterable[RawTick]) -> Iterator[tuple[RawTick, Sample]]:
    by_id = {tick.id: tick for tick in ticks}
    nobody = _unattributed(session, history)
    for first, last in id_runs(by_id):
        holds, long = _holds(session, history, first, last), _long_stretches(session, history, first, last)
        for tick, device, verdict, power_dw, holders, rule in session.rows(
            "SELECT tick, sample.device, verdict, power_dw, holders, rule FROM sample JOIN occupancy"
            " ON occupancy.history = sample.history AND occupancy.id = sample.occupancy"
            " WHERE sample.history = ? AND tick BETWEEN ? AND ?",
            (history, first, last),
        ):
            users = _present(holds, device, tick) if holders is not None else ()
            if not users and verdict == IDLE_HELD:
                users = (nobody,)
            is_long = bool(_present(long, device, tick))
            yield by_id[tick], Sample(device, rule, verdict, users, power_dw, is_long)


def _holds(session: Session, history: int, first: int, last: int) -> _Lives:
    """Holds that charge somebody and were there at one of these ticks (ids, both included)."""
    return _by_device(
        session.rows(
            "SELECT device, first_tick, last_tick, person FROM hold JOIN process"
            " ON process.history = hold.history AND process.id = hold.process"
            " WHERE hold.history = ? AND last_tick >= ? AND first_tick <= ? AND type <> ?",
            (history, first, last, GRAPHICS),
        )
    )


def _long_stretches(session: Session, history: int, first: int, last: int) -> _Lives:
    return _by_device(
        session.rows(
            "SELECT device, first_tick, last_tick, 0 FROM idle_stretch"
            " WHERE history = ? AND is_long = 1 AND last_tick >= ? AND first_tick <= ?",
            (history, first, last),
        )
    )


def _by_device(rows: Iterable[Any]) -> _Lives:
    found: _Lives = defaultdict(list)
    for device, *life in rows:
        found[device].append((life[0], life[1], life[2]))
    return found


def _present(lives: _Lives, device: int, tick: int) -> tuple[int, ...]:
    return tuple(sorted({person for first, last, person in lives.get(device, ()) if first <= tick <= last}))


def _unattributed(session: Session, history: int) -> int:
    """Id of the user who stands for memory that nobody listed holds; 0 where none was ever needed."""
    source = USER_SOURCE_CODE[UserSource.UNATTRIBUTED]
    return int(session.value("SELECT min(id) FROM person WHERE history = ? AND source = ?", (history, source)) or 0)
