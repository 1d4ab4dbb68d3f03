"""What `gua top` shows at one moment, wherever it came from. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Optional

from gua.model import ProcessType, Reason, State

# Columns of the picture of the last minutes; one for each step.
STEPS = 30
_SORTS: dict[str, Callable[[TopCard], tuple[object, ...]]] = {
    "index": lambda card: (),
    "state": lambda card: (list(State).index(card.state),),
    "memory": lambda card: (card.memory_used_mb is None, -(card.memory_used_mb or 0)),
    "utilisation": lambda card: (card.util_pct is None, -(card.util_pct or 0)),
}
SORTS = tuple(_SORTS)


@dataclass(frozen=True)
class TopHolder:
    """A listed process. since_ms: Unix UTC milliseconds, None where its begin was not seen."""

    user: str
    process: str
    pid: int
    type: ProcessType
    memory_mb: Optional[int]
    since_ms: Optional[int]


@dataclass(frozen=True)
class TopCard:
    """One card by its newest tick.

    history: utilisation by step, oldest first; UNSEEN where nobody looked, None where it was not known.
    """

    uuid: str
    index: Optional[int]
    name: str
    at_ms: int
    state: State
    reason: Optional[Reason]
    since_ms: Optional[int]
    util_pct: Optional[int]
    memory_used_mb: Optional[int]
    memory_total_mb: Optional[int]
    power_w: Optional[float]
    holders: tuple[TopHolder, ...]
    history: tuple[Optional[int], ...]


UNSEEN = -1


@dataclass(frozen=True)
class TopView:
    """source: where it comes from, in words. stale_ms: from this age on a tick says nothing about now.

    notes: what else must be known. scheduler: who gives out the cards, None for nobody.
    """

    hostname: str
    source: str
    now_ms: int
    stale_ms: int
    cards: tuple[TopCard, ...]
    notes: tuple[str, ...] = ()
    scheduler: Optional[str] = None

    def is_stale(self, card: TopCard) -> bool:
        return abs(self.now_ms - card.at_ms) > self.stale_ms

    @property
    def free(self) -> list[TopCard]:
        """Cards that nobody holds now, as far as it was seen lately."""
        return [card for card in self.cards if card.state is State.TRULY_IDLE and not self.is_stale(card)]


def in_order(cards: Iterable[TopCard], sort: str) -> list[TopCard]:
    """Cards by one of SORTS, then by index; what is not known comes last."""
    return sorted(cards, key=lambda card: (*_SORTS[sort](card), card.index is None, card.index or 0, card.uuid))


def next_sort(sort: str) -> str:
    return SORTS[(SORTS.index(sort) + 1) % len(SORTS)]


def history_of(ticks: Iterable[tuple[int, Optional[int]]], now_ms: int, step_ms: int) -> tuple[Optional[int], ...]:
    """Utilisation by step of (time, utilisation) pairs: the highest of each step.

    The last step is the newest tick's while that is not overdue by a step; then it is now's, which nobody saw.
    """
    known = list(ticks)
    newest_ms = max((at_ms for at_ms, _ in known if at_ms <= now_ms), default=now_ms)
    end_ms = newest_ms if now_ms - newest_ms < 2 * step_ms else now_ms
    steps: list[Optional[int]] = [UNSEEN] * STEPS
    for at_ms, util_pct in known:
        place = STEPS - 1 - (end_ms - at_ms + step_ms // 2) // step_ms
        if 0 <= place < STEPS:
            steps[place] = _higher(steps[place], util_pct)
    return tuple(steps)


def _higher(known: Optional[int], util_pct: Optional[int]) -> Optional[int]:
    values = [value for value in (known, util_pct) if value is not None]
    seen: Sequence[int] = [value for value in values if value != UNSEEN]
    return max(seen) if seen else None
