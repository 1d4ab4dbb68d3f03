"""Cards that work for nobody: high utilisation, no process listed and no memory used, for minutes on end.

It is a stuck reading or work that hides itself; either way nobody is credited with it, and it is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from gua.coverage import SLOT_MS, Span, slot_ceil
from gua.model import State
from gua.store.codes import STATE_OF_VERDICT, STATES
from gua.store.credit import COVERED
from gua.store.devices import DeviceRow
from gua.store.reader import StoreReader
from gua.store.sums import WindowSums

if TYPE_CHECKING:
    from gua.store.evidence_rows import CardTickRow

LEAST_MS = 10 * 60_000
# Looked for in the last week of a window only, where raw ticks are at hand.
LOOKED_AT_MS = 7 * 86_400_000
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
    devices = [device for device in devices if _unheld_ms(sums, device.id) >= LEAST_MS]
    if not devices:
        return ()
    first, end = max(window[0], window[1] - LOOKED_AT_MS) // SLOT_MS, slot_ceil(window[1]) // SLOT_MS
    # Ten minutes meet two slots at most, so half of them lie in one.
    slots = reader.unheld_active_slots(first, end, LEAST_MS // 2)
    found = (
        longest_ghost(device.uuid, _rows(reader, device.id, slots.get(device.id, []), window)) for device in devices
    )
    return tuple(ghost for ghost in found if ghost is not None)


def _rows(reader: StoreReader, device: int, slots: Iterable[int], window: Span) -> Iterator[CardTickRow]:
    """The card's ticks in these slots and the slots beside them, each once."""
    reached_ms = window[0]
    for slot in slots:
        until_ms = min((slot + 2) * SLOT_MS, window[1])
        since_ms = max((slot - 1) * SLOT_MS, reached_ms)
        yield from (row for row in reader.card_ticks(device, (since_ms, until_ms)) if row.at_ms >= since_ms)
        reached_ms = until_ms


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
