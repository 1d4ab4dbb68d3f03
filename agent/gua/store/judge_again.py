"""Raw ticks of one card judged under another rule, with the long idle-held stretches of that rule. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gua.classify import classify
from gua.model import Rule, State, Verdict
from gua.store.evidence_rows import CardTickRow

# Long before any tick.
_NEVER_MS = -(1 << 62)


@dataclass
class JudgedTick:
    """long_idle: it belongs to an unbroken idle-held stretch that is as long as the rule says, or longer."""

    row: CardTickRow
    verdict: Verdict
    long_idle: bool = False


def judge_again(rows: Iterable[CardTickRow], rule: Rule) -> Iterator[JudgedTick]:
    """Each tick under `rule`, in the order given, which is time order of one card.

    No more ticks wait than a stretch has before it is long, so that years can be judged in little memory.
    """
    stretch = _Stretch(rule.long_idle_s * 1000)
    for row in rows:
        yield from stretch.take(JudgedTick(row, classify(row.evidence, rule)))
    yield from stretch.end()


class _Stretch:
    """The idle-held stretch that is going on, with the ticks of it that wait to hear whether it becomes long."""

    def __init__(self, long_ms: int) -> None:
        self._long_ms = long_ms
        self._waiting: list[JudgedTick] = []
        self._start_ms = self._end_ms = _NEVER_MS

    def take(self, one: JudgedTick) -> Iterator[JudgedTick]:
        """The ticks whose fate is decided by this one."""
        spans = one.row.spans
        if one.verdict.state is not State.IDLE_HELD:
            yield from self.end()
            yield one
            return
        # A tick may come one interval late, as its own length tells it; one that covers nothing changes nothing.
        if spans and not 0 <= spans[0][0] - self._end_ms <= spans[-1][1] - spans[0][0]:
            yield from self.end()
            self._start_ms = spans[0][0]
        if spans:
            self._end_ms = spans[-1][1]
        self._waiting.append(one)
        if self._end_ms - self._start_ms >= self._long_ms:
            for tick in self._waiting:
                tick.long_idle = bool(tick.row.spans)
            yield from self._waiting
            self._waiting = []

    def end(self) -> Iterator[JudgedTick]:
        """What waits stays short. The next idle-held tick begins another stretch."""
        yield from self._waiting
        self._waiting = []
        self._start_ms = self._end_ms = _NEVER_MS
