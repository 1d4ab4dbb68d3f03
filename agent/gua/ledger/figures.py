"""What each hold amounts to over a window: card time by state, mean utilisation, idle stretches. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Optional

from gua.model import State
from gua.store.codes import STATES
from gua.store.ledger import HoldTick, LedgerRow
from gua.store.timeline import Timeline

_IDLE_HELD = STATES.index(State.IDLE_HELD)


@dataclass
class HoldFigures:
    """Milliseconds over the window. state_ms: in the order of codes.STATES. longest_idle_ms: the longest unbroken
    idle-held stretch of the card while it was held. util_ms: time whose utilisation is known, util_pct_ms: that time
    by the percentage.
    """

    state_ms: list[int] = field(default_factory=lambda: [0] * len(STATES))
    long_idle_ms: int = 0
    longest_idle_ms: int = 0
    util_ms: int = 0
    util_pct_ms: int = 0
    _since_ms: Optional[int] = None
    _until_ms: int = 0

    @property
    def card_ms(self) -> int:
        return sum(self.state_ms)

    @property
    def util_pct(self) -> Optional[float]:
        """Mean utilisation of the card while it was held; None where none of that time has a reading."""
        return self.util_pct_ms / self.util_ms if self.util_ms else None

    def take(self, tick: HoldTick) -> None:
        """One tick that saw the hold."""
        self.state_ms[tick.state] += tick.covered_ms
        self.long_idle_ms += tick.covered_ms if tick.long_idle else 0
        if tick.util_pct is not None:
            self.util_ms += tick.covered_ms
            self.util_pct_ms += tick.covered_ms * tick.util_pct
        if tick.state != _IDLE_HELD:
            self._since_ms = None
            return
        # A tick may come one interval late, as for the stretches of the card itself
        goes_on = self._since_ms is not None and 0 <= tick.start_ms - self._until_ms <= tick.reach_ms
        self._since_ms = self._since_ms if goes_on else tick.start_ms
        self._until_ms = tick.end_ms
        if self._since_ms is not None:
            self.longest_idle_ms = max(self.longest_idle_ms, tick.end_ms - self._since_ms)


def measure(holds: Iterable[LedgerRow], ticks: Iterable[HoldTick]) -> dict[int, HoldFigures]:
    """Figures by hold id, of every hold given. ticks: of each card in the order they were stored.

    A tick whose lists could not be read charges nobody.
    """
    by_device: defaultdict[int, list[LedgerRow]] = defaultdict(list)
    for hold in holds:
        by_device[hold.device].append(hold)
    figures = {hold.id: HoldFigures() for rows in by_device.values() for hold in rows}
    present = {device: _Present(rows, figures) for device, rows in by_device.items()}
    for tick in ticks:
        if tick.listed and tick.device in present:
            for one in present[tick.device].at(tick.tick):
                one.take(tick)
    return figures


class _Present:
    """Whose figures grow at a tick of one card."""

    def __init__(self, rows: Sequence[LedgerRow], figures: dict[int, HoldFigures]) -> None:
        self._timeline = Timeline(rows)
        self._figures = figures
        self._known: dict[int, tuple[HoldFigures, ...]] = {}

    def at(self, tick: int) -> tuple[HoldFigures, ...]:
        rows = self._timeline.at(tick)
        known = self._known.get(id(rows))
        if known is None:
            known = self._known[id(rows)] = tuple(self._figures[row.id] for row in rows)
        return known
