"""Cards that work for nobody: high utilisation, no process listed and no memory used, for minutes on end.

It is a stuck reading or work that hides itself; either way nobody is credited with it, and it is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Optional

from gua.coverage import Span
from gua.model import State
from gua.store.codes import STATE_OF_VERDICT, STATES
from gua.store.credit import COVERED
from gua.store.devices import DeviceRow
from gua.store.evidence_rows import CardTickRow
from gua.store.reader import StoreReader
from gua.store.sums import WindowSums

LEAST_MS = 10 * 60_000
# Looked for in the last day of a window only, and only on cards with active time in nobody's name: it needs raw ticks.
LOOKED_AT_MS = 86_400_000
_ACTIVE = STATES.index(State.ACTIVE)


@dataclass(frozen=True)
class Ghost:
    """The longest such stretch of one card. util_pct: the highest in it."""

    uuid: str
    since_ms: int
    until_ms: int
    util_pct: int


def find_ghosts(reader: StoreReader, devices: Iterable[DeviceRow], window: Span, sums: WindowSums) -> tuple[Ghost, ...]:
    """At most one per card."""
    last_day = (max(window[0], window[1] - LOOKED_AT_MS), window[1])
    found = (
        longest_ghost(device.uuid, reader.card_ticks(device.id, last_day))
        for device in devices
        if _unheld_ms(sums, device.id) >= LEAST_MS
    )
    return tuple(ghost for ghost in found if ghost is not None)


def longest_ghost(uuid: str, rows: Iterable[CardTickRow]) -> Optional[Ghost]:
    """The longest stretch of LEAST_MS or more. rows: of one card, in time order."""
    ghosts = [ghost for ghost in _stretches(uuid, rows) if ghost.until_ms - ghost.since_ms >= LEAST_MS]
    return max(ghosts, key=lambda ghost: ghost.until_ms - ghost.since_ms, default=None)


def _stretches(uuid: str, rows: Iterable[CardTickRow]) -> Iterator[Ghost]:
    current: Optional[Ghost] = None
    for row in rows:
        if not _is_ghost(row):
            if current:
                yield current
            current = None
            continue
        start_ms, end_ms = row.spans[0][0], row.spans[-1][1]
        if current is None or start_ms - current.until_ms > end_ms - start_ms:
            if current:
                yield current
            current = Ghost(uuid, start_ms, end_ms, row.util_pct or 0)
        current = Ghost(uuid, current.since_ms, end_ms, max(current.util_pct, row.util_pct or 0))
    if current:
        yield current


def _is_ghost(row: CardTickRow) -> bool:
    evidence, rule = row.evidence, row.rule
    if not row.spans or row.verdict.state is not State.ACTIVE or evidence.holders != 0:
        return False
    limit_mb = rule.unattributed_v1_mb if evidence.memory_v1 else rule.unattributed_mb
    return evidence.unattributed_mb is not None and evidence.unattributed_mb <= limit_mb and not row.holds


def _unheld_ms(sums: WindowSums, device: int) -> int:
    active_ms = sum(
        amounts[COVERED]
        for (card, verdict), amounts in sums.cards.items()
        if card == device and STATE_OF_VERDICT[verdict] == _ACTIVE
    )
    return active_ms - sums.held.get((device, _ACTIVE), 0)
