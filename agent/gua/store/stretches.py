"""Unbroken idle-held stretches of each card, in the order ticks were taken.

A stretch ends with any other state, with another rule, with time unobserved for longer than one interval, or when
the clock went back behind its end. It is long once it reaches from first to last as far as its rule says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from gua.coverage import Span
from gua.store.codes import IDLE_HELD
from gua.store.session import Session


@dataclass
class Stretch:
    id: int
    device: int
    rule: int
    is_long: bool
    first_tick: int
    last_tick: int
    start_ms: int
    end_ms: int
    is_open: bool = True

    def goes_on_with(self, rule: int, spans: Sequence[Span], interval_ms: int) -> bool:
        return self.rule == rule and 0 <= spans[0][0] - self.end_ms <= interval_ms


class Stretches:
    """The open stretch of each card, kept in mind and saved by `flush`."""

    def __init__(self, session: Session, going_on: str = "is_open") -> None:
        """going_on: the condition in SQL for stretches that the next tick may prolong."""
        self._session = session
        self._changed: dict[int, Stretch] = {}
        rows = session.rows(
            "SELECT id, device, rule, is_long, first_tick, last_tick, start_ms, end_ms FROM idle_stretch"
            f" WHERE {going_on}"
        )
        self._open = {row[1]: Stretch(*row) for row in rows}

    def advance(
        self, device: int, rule: int, tick: int, verdict: int, spans: Sequence[Span], interval_ms: int
    ) -> Optional[Stretch]:
        """The stretch that this card-tick belongs to; None when it is not idle-held or covers nothing."""
        stretch = self._open.get(device)
        if verdict != IDLE_HELD:
            self.end(device)
            return None
        if not spans:
            return None
        if stretch is None or not stretch.goes_on_with(rule, spans, interval_ms):
            self.end(device)
            stretch = self._begin(device, rule, tick, spans)
        stretch.last_tick, stretch.end_ms = tick, spans[-1][1]
        self._changed[stretch.id] = stretch
        return stretch

    def make_long(self, stretch: Stretch) -> None:
        stretch.is_long = True
        self._changed[stretch.id] = stretch

    def end(self, device: int) -> None:
        """The stretch of this card is over, if there is one."""
        stretch = self._open.pop(device, None)
        if stretch is not None:
            stretch.is_open = False
            self._changed[stretch.id] = stretch

    def flush(self) -> None:
        # A short stretch that is over will never be asked for again.
        gone = [(one.id,) for one in self._changed.values() if not one.is_open and not one.is_long]
        self._session.connection.executemany("DELETE FROM idle_stretch WHERE id = ?", gone)
        self._session.connection.executemany(
            "UPDATE idle_stretch SET is_open = ?, is_long = ?, last_tick = ?, end_ms = ?, rev = ? WHERE id = ?",
            (
                (one.is_open, one.is_long, one.last_tick, one.end_ms, self._session.rev, one.id)
                for one in self._changed.values()
            ),
        )
        self._changed.clear()

    def _begin(self, device: int, rule: int, tick: int, spans: Sequence[Span]) -> Stretch:
        start_ms, end_ms = spans[0][0], spans[-1][1]
        new = self._session.insert(
            "idle_stretch",
            device=device,
            rule=rule,
            is_open=True,
            is_long=False,
            first_tick=tick,
            last_tick=tick,
            start_ms=start_ms,
            end_ms=end_ms,
            rev=self._session.rev,
        )
        self._open[device] = Stretch(new, device, rule, False, tick, tick, start_ms, end_ms)
        return self._open[device]
