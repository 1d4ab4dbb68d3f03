"""The ends of a window from raw ticks, credited by the agent's own code: a figure cannot differ from the agent's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from gua.coverage import SLOT_MS, Span, clip, pieces
from gua.model import USER_UNATTRIBUTED
from gua.store.codes import GRAPHICS, IDLE_HELD
from gua.store.credit import Credits, Sample
from gua.store.raw import RawTick
from gua.store.sums import WindowSums
from gua_fleet.store.session import Session

_Life = tuple[int, int, int]
"""(whose, first tick, last tick)."""


def add_raw(session: Session, history: int, window: Span, sums: WindowSums) -> None:
    """Add the part of one history's raw ticks that lies in the window and in no superseded slot."""
    ticks = {tick.id: tick for tick in _ticks(session, history, window)}
    if not ticks:
        return
    out = _superseded(session, history, window)
    found = Credits()
    for tick, sample in _samples(session, history, window, ticks):
        spans = (clip(span, window) for span in tick.spans)
        counted = window[0] <= tick.ts_ms < window[1] and tick.ts_ms // SLOT_MS not in out
        left = tuple(piece for piece in pieces(spans) if piece[0] not in out)
        found.add(sample, left, tick.ts_ms // SLOT_MS if counted else None)
    sums.add_credits(found)
    sums.add_ticks(
        tick for tick in ticks.values() if window[0] <= tick.ts_ms < window[1] and tick.ts_ms // SLOT_MS not in out
    )


def _superseded(session: Session, history: int, window: Span) -> set[int]:
    rows = session.rows(
        "SELECT slot FROM superseded WHERE history = ? AND slot >= ? AND slot <= ?",
        (history, window[0] // SLOT_MS, window[1] // SLOT_MS),
    )
    return {slot for (slot,) in rows}


def _reach(session: Session, history: int, window: Span) -> tuple[int, int, int]:
    """The history, and between which times ticks were taken that may reach into the window; both excluded."""
    longest_ms = session.value("SELECT max(cover_ms) FROM tick_day WHERE history = ?", (history,)) or 0
    return history, window[0] - longest_ms - 1, window[1]


def _ticks(session: Session, history: int, window: Span) -> Iterator[RawTick]:
    reach = _reach(session, history, window)
    more: defaultdict[int, list[Span]] = defaultdict(list)
    for tick, start, end in session.rows(
        "SELECT f.tick, from_ms, until_ms FROM tick JOIN tick_fragment AS f ON f.history = tick.history"
        " AND f.tick = tick.id WHERE tick.history = ? AND ts_ms > ? AND ts_ms < ?",
        reach,
    ):
        more[tick].append((start, end))
    for tick, ts_ms, status, cover_ms, start, end in session.rows(
        "SELECT id, ts_ms, status, cover_ms, ts_ms + cover_from, ts_ms + cover_until FROM tick"
        " WHERE history = ? AND ts_ms > ? AND ts_ms < ? ORDER BY id",
        reach,
    ):
        spans = tuple(sorted([(start, end), *more[tick]])) if end > start else ()
        yield RawTick(tick, ts_ms, status, cover_ms, spans)


def _samples(
    session: Session, history: int, window: Span, ticks: dict[int, RawTick]
) -> Iterator[tuple[RawTick, Sample]]:
    first, last = min(ticks), max(ticks)
    holds, stretches = _holds(session, history, first, last), _stretches(session, history, first, last)
    nobody = session.value("SELECT id FROM person WHERE history = ? AND name = ?", (history, USER_UNATTRIBUTED)) or 0
    for tick, device, verdict, power_dw, holders, rule in session.rows(
        "SELECT tick.id, device, verdict, power_dw, holders, rule FROM tick"
        " JOIN sample ON sample.history = tick.history AND sample.tick = tick.id"
        " JOIN occupancy ON occupancy.history = tick.history AND occupancy.id = sample.occupancy"
        " WHERE tick.history = ? AND ts_ms > ? AND ts_ms < ? ORDER BY tick.id, device",
        _reach(session, history, window),
    ):
        # where the lists could not be read nobody is charged
        users = () if holders is None else tuple(sorted(set(_present(holds[device], tick))))
        if not users and verdict == IDLE_HELD:
            users = (nobody,)
        long_idle = any(True for _ in _present(stretches[device], tick))
        yield ticks[tick], Sample(device, rule, verdict, users, power_dw, long_idle)


def _holds(session: Session, history: int, first: int, last: int) -> defaultdict[int, list[_Life]]:
    """By card, the users whose processes charge somebody and were there at one of these ticks."""
    found: defaultdict[int, list[_Life]] = defaultdict(list)
    for device, *life in session.rows(
        "SELECT device, person, first_tick, last_tick FROM hold"
        " JOIN process ON process.history = hold.history AND process.id = hold.process"
        " WHERE hold.history = ? AND last_tick >= ? AND first_tick <= ? AND type <> ?",
        (history, first, last, GRAPHICS),
    ):
        found[device].append((life[0], life[1], life[2]))
    return found


def _stretches(session: Session, history: int, first: int, last: int) -> defaultdict[int, list[_Life]]:
    found: defaultdict[int, list[_Life]] = defaultdict(list)
    for device, first_tick, last_tick in session.rows(
        "SELECT device, first_tick, last_tick FROM idle_stretch"
        " WHERE history = ? AND is_long = 1 AND last_tick >= ? AND first_tick <= ?",
        (history, first, last),
    ):
        found[device].append((0, first_tick, last_tick))
    return found


def _present(lives: Iterable[_Life], tick: int) -> Iterator[int]:
    return (whose for whose, first, last in lives if first <= tick <= last)
