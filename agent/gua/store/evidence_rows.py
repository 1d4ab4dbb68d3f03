"""Raw ticks of one card with all that was known of it then: what a dispute is about."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from gua.coverage import Span
from gua.model import Evidence, ProcessType, Rule, TickStatus, UserSource, UtilSource, Verdict
from gua.store.codes import PROCESS_TYPES, STATUSES, USER_SOURCES, UTIL_SOURCES, VERDICTS
from gua.store.evidence import unpack_evidence
from gua.store.sample_id import DEVICE_BITS
from gua.store.session import Session
from gua.store.timeline import Timeline


@dataclass(frozen=True)
class HeldRow:
    """One hold as one tick saw it. hold: its id. memory_mb: held then, None where unknown."""

    hold: int
    user: str
    user_source: UserSource
    process: str
    pid: int
    type: ProcessType
    memory_mb: Optional[int]


@dataclass(frozen=True)
class CardTickRow:
    """One card at one tick, as it was stored.

    spans: the time the tick covers, not cut to any window; none when it covers nothing. rule: the one that gave the
    verdict. holds: every listed process, graphics too; none where the lists could not be read (evidence.holders None).
    """

    tick_id: int
    at_ms: int
    spans: tuple[Span, ...]
    status: TickStatus
    verdict: Verdict
    rule: Rule
    evidence: Evidence
    util_pct: Optional[int]
    util_max_pct: Optional[int]
    util_source: Optional[UtilSource]
    memory_used_mb: Optional[int]
    temperature_c: Optional[int]
    power_w: Optional[float]
    holds: tuple[HeldRow, ...]


_WHERE = " WHERE ts_ms > ? AND ts_ms < ?"
_ROWS = (
    "SELECT tick.id, ts_ms, ts_ms + cover_from, ts_ms + cover_until, status, verdict, rule, flags, util_pct,"
    " util_max_pct, util_source, memory_used_mb, temperature_c, power_dw, holders, held_mb, unattributed_mb"
    f" FROM tick JOIN gpu_sample ON gpu_sample.id = (tick.id << {DEVICE_BITS} | ?){_WHERE} ORDER BY ts_ms, tick.id"
)
_RULE = "active_util_pct, held_mb, unattributed_mb, unattributed_v1_mb, long_idle_s"


def card_ticks(session: Session, device: int, window: Span, longest_cover_ms: int) -> Iterator[CardTickRow]:
    """Raw ticks of one card, taken in the window or reaching into it, in time order."""
    reach = (window[0] - longest_cover_ms - 1, window[1])
    mig = bool(session.rows("SELECT 1 FROM device WHERE id = ? AND mig_parent_uuid IS NOT NULL", (device,)))
    rules = {row[0]: Rule(*row[1:]) for row in session.rows(f"SELECT id, {_RULE} FROM rule")}
    fragments = _fragments(session, reach)
    held = Timeline(_holds(session, device, reach))
    for row in session.connection.execute(_ROWS, (device, *reach)):
        spans = _spans((row[2], row[3]), fragments.get(row[0], ()))
        if row[1] < window[0] and not any(end > window[0] for _, end in spans):
            continue
        holds = () if row[14] is None else tuple(life.row_at(row[0]) for life in held.at(row[0]))
        yield _card_tick(row, spans, rules[row[6]], mig, holds)


def _card_tick(
    row: Sequence[Any], spans: tuple[Span, ...], rule: Rule, mig: bool, holds: tuple[HeldRow, ...]
) -> CardTickRow:
    tick, at_ms, _, _, status, verdict, _, flags, util_pct, util_max_pct, source, used_mb, celsius, power_dw = row[:14]
    evidence = unpack_evidence(
        verdict, flags, util_pct=util_pct, holders=row[14], held_mb=row[15], unattributed_mb=row[16], mig=mig
    )
    return CardTickRow(
        tick_id=tick,
        at_ms=at_ms,
        spans=spans,
        status=STATUSES[status],
        verdict=VERDICTS[verdict],
        rule=rule,
        evidence=evidence,
        util_pct=util_pct,
        util_max_pct=util_max_pct,
        util_source=None if source is None else UTIL_SOURCES[source],
        memory_used_mb=used_mb,
        temperature_c=celsius,
        power_w=None if power_dw is None else power_dw / 10,
        holds=holds,
    )


def _spans(first: Span, more: Sequence[Span]) -> tuple[Span, ...]:
    return tuple(sorted([first, *more])) if first[0] < first[1] else ()


def _fragments(session: Session, reach: Span) -> dict[int, list[Span]]:
    found: defaultdict[int, list[Span]] = defaultdict(list)
    for tick, start, end in session.rows(
        f"SELECT tick, from_ms, until_ms FROM tick_fragment JOIN tick ON tick.id = tick_fragment.tick{_WHERE}", reach
    ):
        found[tick].append((start, end))
    return found


@dataclass(frozen=True)
class _Life:
    """A hold. memory: what it held from which tick on, ascending."""

    first_tick: int
    last_tick: int
    row: HeldRow
    memory_from: tuple[int, ...]
    memory_mb: tuple[Optional[int], ...]

    def row_at(self, tick: int) -> HeldRow:
        place = bisect_right(self.memory_from, tick) - 1
        return self.row if place < 0 else HeldRow(*_texts(self.row), self.memory_mb[place])


def _texts(row: HeldRow) -> tuple[int, str, UserSource, str, int, ProcessType]:
    return row.hold, row.user, row.user_source, row.process, row.pid, row.type


def _holds(session: Session, device: int, reach: Span) -> list[_Life]:
    """The holds of the card that were there at one of the ticks, oldest first."""
    first, last = session.rows(f"SELECT min(id), max(id) FROM tick{_WHERE}", reach)[0]
    if first is None:
        return []
    values = (device, first, last)
    where = " WHERE device = ? AND hold.last_tick >= ? AND hold.first_tick <= ?"
    memory: defaultdict[int, list[tuple[int, Optional[int]]]] = defaultdict(list)
    for hold, tick, memory_mb in session.rows(
        f"SELECT hold, tick, hold_memory.memory_mb FROM hold JOIN hold_memory ON hold_memory.hold = hold.id{where}"
        " ORDER BY hold, tick",
        values,
    ):
        memory[hold].append((tick, memory_mb))
    rows = session.rows(
        "SELECT hold.id, first_tick, last_tick, user.name, process.source, process.name, pid, type, memory_mb FROM hold"
        f" JOIN process ON process.id = hold.process JOIN user ON user.id = process.user{where} ORDER BY hold.id",
        values,
    )
    return [_life(row, memory.get(row[0], [])) for row in rows]


def _life(row: Sequence[Any], memory: Sequence[tuple[int, Optional[int]]]) -> _Life:
    hold, first_tick, last_tick, user, source, process, pid, kind, memory_mb = row
    held = HeldRow(hold, user, USER_SOURCES[source], process, pid, PROCESS_TYPES[kind], memory_mb)
    return _Life(first_tick, last_tick, held, tuple(tick for tick, _ in memory), tuple(amount for _, amount in memory))
