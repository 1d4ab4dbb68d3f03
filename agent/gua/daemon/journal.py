"""What the daemon says of its ticks: a trouble once when it begins and once when it ends, not at every tick."""

from __future__ import annotations

import logging

from gua.model import CardReading, FaultKind, Tick, TickStatus
from gua.text import shown

logger = logging.getLogger(__name__)

# A trouble that comes and goes at every tick is said again only after this long.
_REPEAT_MS = 10 * 60_000


class TickJournal:
    """Remembers what is wrong, and logs the changes."""

    def __init__(self) -> None:
        self._troubles: frozenset[str] = frozenset()
        self._said_ms: dict[str, int] = {}
        self._lost = 0

    def ticked(self, tick: Tick, now_ms: int) -> None:
        """A tick was taken and stored. now_ms: a monotonic time."""
        if self._lost:
            logger.warning("recovered: %d ticks were lost", self._lost)
            self._lost = 0
        troubles = describe_troubles(tick)
        for text in sorted(troubles - self._troubles):
            self._say(logging.WARNING, text, now_ms)
        for text in sorted(self._troubles - troubles):
            self._say(logging.INFO, f"no longer: {text}", now_ms)
        self._troubles = troubles

    def lost(self, error: Exception, now_ms: int) -> None:
        """A tick could not be taken or stored."""
        self._lost += 1
        self._say(logging.ERROR, f"tick lost: {type(error).__name__}: {shown(str(error), 300)}", now_ms)
        logger.debug("tick lost", exc_info=error)

    def skipped(self, now_ms: int) -> None:
        """A tick took longer than an interval, so that the next one was left out: its time is not observed."""
        self._say(logging.WARNING, "sampling takes longer than the interval: ticks are left out", now_ms)

    def _say(self, level: int, text: str, now_ms: int) -> None:
        said_ms = self._said_ms.get(text)
        if said_ms is None or now_ms - said_ms >= _REPEAT_MS:
            self._said_ms[text] = now_ms
            logger.log(level, "%s", text)


def describe_troubles(tick: Tick) -> frozenset[str]:
    """One line for each thing that is wrong in a tick; empty when all is well. Pure."""
    if tick.status is TickStatus.UNRESPONSIVE:
        return frozenset({"NVML does not answer"})
    if tick.fault is not None:
        return frozenset({f"the driver cannot be used: {tick.fault.error}: {shown(tick.fault.message, 200)}"})
    strangers = [f"card {slot.index}, never seen before: card_lost: {slot.fault.error}" for slot in tick.strangers]
    return frozenset([text for card in tick.cards for text in _card_troubles(card.reading)] + strangers)


def _card_troubles(card: CardReading) -> list[str]:
    if card.absent is not None:
        return [f"card {card.uuid}: {card.absent.value}"]
    failed = sorted((reading, fault.error) for reading, fault in card.faults.items() if fault.kind is FaultKind.FAILED)
    return [f"card {card.uuid}: no {reading}: {error}" for reading, error in failed]
