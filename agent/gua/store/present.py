"""The newest tick of each card, and since when its state stands."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Optional

from gua.model import CardTick
from gua.store.codes import STATES
from gua.store.holds import TickTime
from gua.store.session import Session


@dataclass
class _Row:
    device: int
    tick: int
    state: int
    since_ms: int
    until_ms: int
    last_seen_ms: Optional[int]


class Present:
    def __init__(self, session: Session) -> None:
        self._session = session
        rows = session.rows("SELECT device, tick, state, since_ms, until_ms, last_seen_ms FROM card_now")
        self._rows = {row[0]: _Row(*row) for row in rows}
        self._changed: set[int] = set()

    def last_seen_ms(self, device: int) -> Optional[int]:
        """When the card was last reached; None when it never was."""
        row = self._rows.get(device)
        return row.last_seen_ms if row else None

    def note(self, device: int, card: CardTick, time: TickTime, interval_ms: int) -> None:
        """A state stands since its first tick, unless an interval or more went by unobserved in between."""
        before = self._rows.get(device)
        state = STATES.index(card.verdict.state)
        unbroken = before is not None and before.state == state and time.ts_ms <= before.until_ms + interval_ms
        since_ms = min(before.since_ms, time.ts_ms) if before and unbroken else time.ts_ms
        last_seen_ms = time.ts_ms if card.reading.absent is None else before.last_seen_ms if before else None
        self._rows[device] = _Row(device, time.id, state, since_ms, time.ts_ms + interval_ms, last_seen_ms)
        self._changed.add(device)

    def flush(self) -> None:
        self._session.connection.executemany(
            "INSERT OR REPLACE INTO card_now (device, tick, state, since_ms, until_ms, last_seen_ms)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (astuple(self._rows[device]) for device in self._changed),
        )
        self._changed.clear()
