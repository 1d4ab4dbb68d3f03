"""Raw ticks read back as samples to credit: for the ends of windows, and for stretches that turn long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from gua.coverage import Span
from gua.model import USER_UNATTRIBUTED
from gua.store.codes import GRAPHICS, IDLE_HELD
from gua.store.credit import Sample
from gua.store.sample_id import sample_ids
from gua.store.session import Session

_TICKS = "SELECT tick.id, ts_ms, status, cover_ms, ts_ms + cover_from, ts_ms + cover_until FROM tick"


@dataclass(frozen=True)
class RawTick:
    """spans: what it covers, in order. status: a code. cover_ms: the time it might have covered."""

    id: int
    ts_ms: int
    status: int
    cover_ms: int
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class RawHold:
    id: int
    user: int
    first_tick: int
    last_tick: int


@dataclass(frozen=True)
class RawSample:
    """One card-tick with the holds that were on the card then."""

    tick: RawTick
    sample: Sample
    holds: tuple[RawHold, ...]


def ticks_touching(session: Session, window: Span, longest_cover_ms: int) -> list[RawTick]:
    """Ticks taken within the window, and those before it whose covered time may reach into it."""
    where = " WHERE ts_ms > ? AND ts_ms < ? ORDER BY tick.id"
    return _load_ticks(session, where, (window[0] - longest_cover_ms - 1, window[1]))


def ticks_between(session: Session, first: int, last: int) -> list[RawTick]:
    """Ticks by id, both ends included."""
    return _load_ticks(session, " WHERE tick.id BETWEEN ? AND ? ORDER BY tick.id", (first, last))


def _load_ticks(session: Session, where: str, values: Sequence[int]) -> list[RawTick]:
    rows = session.rows(_TICKS + where, values)
    more: defaultdict[int, list[Span]] = defaultdict(list)
    for first, last in id_runs(row[0] for row in rows):
        for tick, start, end in session.rows(
            "SELECT tick, from_ms, until_ms FROM tick_fragment WHERE tick BETWEEN ? AND ?", (first, last)
        ):
            more[tick].append((start, end))
    return [RawTick(row[0], row[1], row[2], row[3], _spans(row[4], row[5], more.get(row[0], []))) for row in rows]


def _spans(start: int, end: int, more: list[Span]) -> tuple[Span, ...]:
    return tuple(sorted([(start, end), *more])) if end > start else ()


def samples_of(session: Session, ticks: Sequence[RawTick], device: Optional[int] = None) -> Iterator[RawSample]:
    """Every card-tick of `ticks` (of one card only where `device` is given)."""
    by_id = {tick.id: tick for tick in ticks}
    unattributed = unattributed_user(session)
    for first, last in id_runs(by_id):
        holds = holds_by_device(session, first, last)
        long = _long_stretches(session, first, last)
        for row in _sample_rows(session, first, last, device):
            present = _present(holds.get(row[1], ()), row[0]) if row[4] is not None else ()
            yield _raw_sample(by_id[row[0]], row, present, unattributed, _present(long.get(row[1], ()), row[0]) != ())


def _raw_sample(
    tick: RawTick, row: Sequence[Any], holds: tuple[RawHold, ...], unattributed: int, is_long: bool
) -> RawSample:
    users = tuple(sorted({hold.user for hold in holds}))
    if not users and row[2] == IDLE_HELD:
        users = (unattributed,)
    return RawSample(tick, Sample(row[1], row[5], row[2], users, row[3], is_long), holds)


def _sample_rows(session: Session, first: int, last: int, device: Optional[int]) -> Iterable[Any]:
    query = "SELECT tick, device, verdict, power_dw, holders, rule FROM gpu_sample WHERE id BETWEEN ? AND ?"
    if device is None:
        return session.rows(query, sample_ids(first, last))
    return session.rows(f"{query} AND device = ?", (*sample_ids(first, last), device))


def holds_by_device(session: Session, first: int, last: int) -> dict[int, list[RawHold]]:
    """Holds that charge somebody and were there at one of these ticks (ids, both included), by card."""
    found: defaultdict[int, list[RawHold]] = defaultdict(list)
    for row in session.rows(
        "SELECT device, hold.id, user, first_tick, last_tick FROM hold JOIN process ON process.id = hold.process"
        " WHERE (is_open OR (NOT is_open AND last_tick >= ?)) AND last_tick >= ? AND first_tick <= ? AND type <> ?",
        (first, first, last, GRAPHICS),
    ):
        found[row[0]].append(RawHold(*row[1:]))
    return found


def _long_stretches(session: Session, first: int, last: int) -> dict[int, list[RawHold]]:
    found: defaultdict[int, list[RawHold]] = defaultdict(list)
    for device, first_tick, last_tick in session.rows(
        "SELECT device, first_tick, last_tick FROM idle_stretch WHERE is_long AND last_tick >= ? AND first_tick <= ?",
        (first, last),
    ):
        found[device].append(RawHold(0, 0, first_tick, last_tick))
    return found


def _present(holds: Iterable[RawHold], tick: int) -> tuple[RawHold, ...]:
    return tuple(hold for hold in holds if hold.first_tick <= tick <= hold.last_tick)


def unattributed_user(session: Session) -> int:
    """Id of the user who stands for memory that nobody listed holds; 0 where none was ever needed."""
    rows = session.rows("SELECT id FROM user WHERE name = ?", (USER_UNATTRIBUTED,))
    return int(rows[0][0]) if rows else 0


def id_runs(ids: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending ids as (first, last) of unbroken runs, so that one jump of the clock does not widen a search."""
    runs: list[tuple[int, int]] = []
    for one in ids:
        if runs and one == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], one)
        else:
            runs.append((one, one))
    return runs
