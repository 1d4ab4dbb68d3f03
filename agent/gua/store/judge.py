"""Stored samples judged under other rules than the one they were stored with; each kind of sample once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from gua.classify import classify
from gua.coverage import Span
from gua.model import Rule
from gua.store.codes import STATE_OF_VERDICT, VERDICT_CODE
from gua.store.evidence import unpack_evidence
from gua.store.packing import UTIL_MAX_AT, VERDICT_MASK, util_pct_of
from gua.store.sample_id import DEVICE_BITS
from gua.store.session import Session

DEVICE_MASK = (1 << DEVICE_BITS) - 1
# Readings up to the utilisation, with the verdict that says why a card was absent: all that a rule looks at.
JUDGED_MASK = (1 << UTIL_MAX_AT) - 1

Judged = tuple[tuple[int, ...], bool]
"""A verdict's code for each rule, and whether the lists of processes could be read."""

_WHERE = "WHERE ts_ms > ? AND ts_ms < ?"
# Whole ticks, and the further parts of those that others cut apart.
_SPANS = (
    f"SELECT id AS tick, ts_ms + cover_from AS start_ms, ts_ms + cover_until AS end_ms FROM tick {_WHERE}",
    f"SELECT tick, from_ms AS start_ms, until_ms AS end_ms FROM tick_fragment JOIN tick ON tick.id = tick {_WHERE}",
)
# Time within the window by kind of sample; an occupancy is of one card.
_KINDS = (
    f"SELECT min(sample.id) & {DEVICE_MASK}, occupancy, readings & {JUDGED_MASK},"
    " sum(min(end_ms, ?) - max(start_ms, ?)) FROM ({spans}) JOIN sample"
    f" ON sample.id BETWEEN tick << {DEVICE_BITS} AND tick << {DEVICE_BITS} | {DEVICE_MASK}"
    " WHERE end_ms > ? AND start_ms < ? AND start_ms < end_ms GROUP BY 2, 3"
)
_NEWEST = "SELECT device, tick FROM card_now JOIN device ON device.id = card_now.device WHERE retired_at_ms IS NULL"
_BACKWARDS = (
    "SELECT ts_ms, cover_ms, occupancy, readings FROM tick"
    f" JOIN sample ON sample.id = (tick.id << {DEVICE_BITS} | ?) WHERE tick.id <= ? ORDER BY tick.id DESC"
)


class Judge:
    """Verdicts under the rules, which apply to every card, also to one whose model has its own."""

    def __init__(self, session: Session, rules: Sequence[Rule]) -> None:
        self._session = session
        self._rules = rules
        self._judged: dict[int, Judged] = {}
        self._mig = {row[0] for row in session.rows("SELECT id FROM device WHERE mig_parent_uuid IS NOT NULL")}

    def of(self, device: int, occupancy: int, readings: int) -> Judged:
        """The verdicts on one stored sample; the same object for the same kind of sample."""
        key = occupancy << UTIL_MAX_AT | readings & JUDGED_MASK
        found = self._judged.get(key)
        if found is None:
            found = self._judged[key] = self._anew(device, occupancy, readings)
        return found

    def _anew(self, device: int, occupancy: int, readings: int) -> Judged:
        flags, holders, held_mb, unattributed_mb = self._session.rows(
            "SELECT flags, holders, held_mb, unattributed_mb FROM occupancy WHERE id = ?", (occupancy,)
        )[0]
        evidence = unpack_evidence(
            readings & VERDICT_MASK,
            flags,
            util_pct=util_pct_of(readings),
            holders=holders,
            held_mb=held_mb,
            unattributed_mb=unattributed_mb,
            mig=device in self._mig,
        )
        return tuple(VERDICT_CODE[classify(evidence, rule)] for rule in self._rules), holders is not None


def verdict_ms(session: Session, window: Span, rules: Sequence[Rule], longest_cover_ms: int) -> list[dict[int, int]]:
    """Covered milliseconds within the window by verdict's code, under each of the rules; of all cards together."""
    judge = Judge(session, rules)
    sums: list[dict[int, int]] = [{} for _ in rules]
    start_ms, end_ms = window
    reach = (start_ms - longest_cover_ms - 1, end_ms)
    for spans in _SPANS:
        query = _KINDS.format(spans=spans)
        for device, occupancy, readings, covered_ms in session.rows(query, (end_ms, start_ms, *reach, *window)):
            for found, verdict in zip(sums, judge.of(device, occupancy, readings)[0]):
                found[verdict] = found.get(verdict, 0) + covered_ms
    return sums


def present_under(session: Session, rule: Rule) -> dict[int, tuple[int, int]]:
    """(verdict's code, since when its state stands by unbroken raw ticks) of each card's newest tick, by device id.

    Cards whose newest tick is gone are left out.
    """
    judge = Judge(session, [rule])
    found = {device: _present(session, judge, device, tick) for device, tick in session.rows(_NEWEST)}
    return {device: one for device, one in found.items() if one is not None}


def _present(session: Session, judge: Judge, device: int, newest: int) -> Optional[tuple[int, int]]:
    """Looks back no further than the state goes; a tick may come one interval late, as in present.Present."""
    rows = session.connection.execute(_BACKWARDS, (device, newest))
    first = next(rows, None)
    if first is None:
        return None
    since_ms, cover_ms, *sample = first
    verdict = judge.of(device, *sample)[0][0]
    reach_ms = since_ms - cover_ms
    for ts_ms, cover_ms, *sample in rows:
        before = judge.of(device, *sample)[0][0]
        if STATE_OF_VERDICT[before] != STATE_OF_VERDICT[verdict] or ts_ms + cover_ms < reach_ms:
            break
        since_ms, reach_ms = min(since_ms, ts_ms), ts_ms - cover_ms
    return verdict, since_ms
