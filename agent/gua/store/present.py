"""The newest tick of each card, and since when its state stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from gua.model import CardTick
from gua.store.codes import STATES
from gua.store.session import Session, TickTime


@dataclass
class _Row:
    device: int
    tick: int
    state: int
    since_ms: int
    until_ms: int
    last_seen_ms: Optional[int]
    energy_j: Optional[int]


class Present:
    def __init__(self, session: Session) -> None:
        self._session = session
        rows = session.rows("SELECT device, tick, state, since_ms, until_ms, last_seen_ms, energy_j FROM card_now")
        self._rows = {row[0]: _Row(*row) for row in rows}
        self._changed: set[int] = set()

    def last_seen_ms(self, device: int) -> Optional[int]:
        """When the card was last reached; None when it never was."""
        row = self._rows.get(device)
        return row.last_seen_ms if row else None

    def note(self, device: int, card: CardTick, time: TickTime) -> Optional[int]:
        """Take in one card-tick. Gives the joules its counter moved since the card's previous tick, if it is known.

        A state stands since its first tick, unless more than an interval went by unobserved in between.
        """
        before = self._rows.get(device)
        state = STATES.index(card.verdict.state)
        unbroken = before if before is not None and time.ts_ms <= before.until_ms + time.interval_ms else None
        since_ms = min(unbroken.since_ms, time.ts_ms) if unbroken and unbroken.state == state else time.ts_ms
        last_seen_ms = time.ts_ms if card.reading.absent is None else before.last_seen_ms if before else None
        counter_j = None if card.reading.energy_mj is None else card.reading.energy_mj // 1000
        until_ms = time.ts_ms + time.interval_ms
        self._rows[device] = _Row(device, time.id, state, since_ms, until_ms, last_seen_ms, counter_j)
        self._changed.add(device)
        return _moved_j(unbroken, counter_j)

    def flush(self) -> None:
        self._session.connection.executemany(
            "INSERT OR REPLACE INTO card_now (device, tick, state, since_ms, until_ms, last_seen_ms, energy_j)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            # In the order of the fields; dataclasses.astuple copies deeply, at ten times the cost
            (tuple(vars(self._rows[device]).values()) for device in self._changed),
        )
        self._changed.clear()


def _moved_j(before: Optional[_Row], counter_j: Optional[int]) -> Optional[int]:
    if before is None or before.energy_j is None or counter_j is None or counter_j < before.energy_j:
        return None
    return counter_j - before.energy_j
