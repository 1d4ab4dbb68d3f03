"""Raw ticks of one card judged under another rule, with the long idle-held stretches of that rule. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Optional

from gua.classify import classify
from gua.model import Rule, State, Verdict
from gua.store.evidence_rows import CardTickRow


@dataclass
class JudgedTick:
    """long_idle: it belongs to an unbroken idle-held stretch that is as long as the rule says, or longer."""

    row: CardTickRow
    verdict: Verdict
    long_idle: bool = False


def judge_again(rows: Iterable[CardTickRow], rule: Rule) -> list[JudgedTick]:
    """Each tick under `rule`, in the order given, which is time order of one card."""
    judged, stretch = [], _Stretch(rule.long_idle_s * 1000)
    for row in rows:
        one = JudgedTick(row, classify(row.evidence, rule))
        stretch.take(one)
        judged.append(one)
    return judged


class _Stretch:
    """The idle-held stretch that is going on."""

    def __init__(self, long_ms: int) -> None:
        self._long_ms = long_ms
        self._ticks: list[JudgedTick] = []
        self._start_ms: Optional[int] = None
        self._end_ms = 0

    def take(self, one: JudgedTick) -> None:
        spans = one.row.spans
        if one.verdict.state is not State.IDLE_HELD:
            self._start_ms, self._ticks = None, []
            return
        if not spans:
            return
        # A tick may come one interval late, as its own length tells it.
        if self._start_ms is None or spans[0][0] - self._end_ms > spans[-1][1] - spans[0][0]:
            self._start_ms, self._ticks = spans[0][0], []
        self._ticks.append(one)
        self._end_ms = spans[-1][1]
        if self._end_ms - self._start_ms >= self._long_ms:
            for tick in self._ticks:
                tick.long_idle = True
            self._ticks = []
