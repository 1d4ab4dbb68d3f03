"""What the daemon says of its ticks: a trouble once when it begins and once when it ends, not at every tick."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Optional

from gua.model import CardReading, FaultKind, Tick, TickStatus
from gua.text import shown
from gua.units import format_duration

logger = logging.getLogger(__name__)

# A trouble that comes and goes at every tick is said again only after this long.
_REPEAT_MS = 10 * 60_000
# So many different lines within ten minutes are a trouble that words itself anew each time.
_MOST_SAID = 1000


class TickJournal:
    """Remembers what is wrong, and logs the changes. Times are monotonic milliseconds."""

    def __init__(self) -> None:
        self._troubles: dict[str, int] = {}  # with the number of ticks they lasted so far
        self._said_ms: dict[str, int] = {}
        self._lost = 0
        self._skipped: Counter[str] = Counter()
        self._paused: Optional[str] = None

    def ticked(self, tick: Tick, now_ms: int, more: frozenset[str] = frozenset()) -> None:
        """A tick was taken and stored. more: what is wrong besides, one line each."""
        if self._lost:
            logger.warning("recovered: %s lost", ticks_text(self._lost))
            self._lost = 0
        troubles = describe_troubles(tick) | more
        for text in sorted(troubles - self._troubles.keys()):
            self._say(logging.WARNING, text, now_ms)
        for text in sorted(self._troubles.keys() - troubles):
            self._say(logging.INFO, f"no longer: {text}", now_ms, f" (after {ticks_text(self._troubles[text])})")
        self._troubles = {text: self._troubles.get(text, 0) + 1 for text in troubles}

    def lost(self, error: Exception, now_ms: int) -> None:
        """A tick could not be taken or stored."""
        self._lost += 1
        self._say(logging.ERROR, f"tick lost: {type(error).__name__}: {shown(str(error), 300)}", now_ms)
        logger.debug("tick lost", exc_info=error)

    def skipped(self, late_s: float, work_s: float, ticks: int, now_ms: int) -> None:
        """Ticks fell out, so that their time is not observed.

        late_s: how late the one before them began, work_s: how long it took; the longer one is the reason.
        """
        stood_still = late_s > work_s
        text = "the daemon did not run" if stood_still else "a tick took longer than the interval"
        self._skipped[text] += ticks
        if self._may_say(text, now_ms):
            seconds = late_s if stood_still else work_s
            logger.warning("%s (%.1f s): %s left out", text, seconds, ticks_text(self._skipped.pop(text)))

    def suspended(self, seconds: float) -> None:
        """The machine slept, so that nobody looked."""
        logger.info(
            "the machine was suspended for %s: that time is not observed", format_duration(round(seconds * 1000))
        )

    def clock_set(self, by_ms: int, now_ms: int) -> None:
        """The wall clock jumped. Ticks are stamped with it, and taken by another one."""
        way = "ahead" if by_ms > 0 else "back"
        text = f"the clock was set {way}"
        if self._may_say(text, now_ms):
            logger.warning("%s by %s: ticks go on at their intervals", text, format_duration(abs(by_ms)))

    def paused(self, request: str) -> None:
        """A request to pause stands; told once, and again when it changes."""
        if request != self._paused:
            logger.info("%s: the driver is let go of", request)
        self._paused = request

    def resumed(self) -> None:
        self._paused = None
        logger.info("the pause is over: sampling goes on")

    def pause_not_stored(self, error: Exception, now_ms: int) -> None:
        text = f"the pause cannot be stored, its time counts as not observed: {shown(str(error), 300)}"
        self._say(logging.ERROR, text, now_ms)

    def _say(self, level: int, text: str, now_ms: int, more: str = "") -> None:
        if self._may_say(text, now_ms):
            logger.log(level, "%s%s", text, more)

    def _may_say(self, text: str, now_ms: int) -> bool:
        if now_ms - self._said_ms.get(text, -_REPEAT_MS) < _REPEAT_MS:
            return False
        if len(self._said_ms) >= _MOST_SAID:  # texts that differ every time must not fill the memory
            self._said_ms.clear()
        self._said_ms[text] = now_ms
        return True


def ticks_text(number: int) -> str:
    return "1 tick" if number == 1 else f"{number} ticks"


def describe_troubles(tick: Tick) -> frozenset[str]:
    """One line for each thing that is wrong in a tick; empty when all is well. Pure."""
    if tick.status is TickStatus.UNRESPONSIVE:
        return frozenset(
            {"NVML does not answer"}
        )  # which call differs from tick to tick, and is logged where it is met
    if tick.fault is not None:
        return frozenset({f"the driver cannot be used: {tick.fault.error}: {shown(tick.fault.message, 200)}"})
    strangers = [
        f"card {slot.index}, never seen before: {slot.reason.value}: {slot.fault.error}" for slot in tick.strangers
    ]
    return frozenset([text for card in tick.cards for text in _card_troubles(card.reading)] + strangers)


def _card_troubles(card: CardReading) -> list[str]:
    if card.absent is not None:
        return [f"card {card.uuid}: {card.absent.value}"]
    failed = sorted((reading, fault.error) for reading, fault in card.faults.items() if fault.kind is FaultKind.FAILED)
    return [f"card {card.uuid}: no {reading}: {error}" for reading, error in failed]
