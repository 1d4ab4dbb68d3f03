"""Ticks of one card told in few lines: those in which nothing changed become one stretch. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from gua.coverage import Span, length_ms
from gua.model import Rule, TickStatus, Verdict
from gua.store.evidence_rows import CardTickRow, HeldRow

_Range = tuple[int, int]
"""(lowest, highest)"""


@dataclass
class TickStretch:
    """Ticks one after the other that gave the same state by the same rule and listed the same processes.

    since_ms, until_ms: from the first covered moment to the last (or tick). covered_ms: seen in between. util_pct,
    memory_mb: lowest and highest; None where no tick knew. util_unknown: ticks without a utilisation. holds: as the
    last tick saw them. statuses: other than ok.
    """

    since_ms: int
    until_ms: int
    verdict: Verdict
    rule: Rule
    holds: tuple[HeldRow, ...]
    listed: bool
    ticks: int = 0
    covered_ms: int = 0
    util_pct: Optional[_Range] = None
    memory_mb: Optional[_Range] = None
    util_unknown: int = 0
    statuses: set[TickStatus] = field(default_factory=set)

    def add(self, row: CardTickRow, spans: tuple[Span, ...], *, counted: bool = True) -> None:
        """One more tick. counted: it was taken in the window, and not only reaches into it."""
        self.ticks += counted
        self.covered_ms += sum(map(length_ms, spans))
        self.until_ms = spans[-1][1] if spans else row.at_ms
        self.holds = row.holds
        self.util_pct = _wider(self.util_pct, row.util_pct)
        self.memory_mb = _wider(self.memory_mb, row.memory_used_mb)
        self.util_unknown += counted and row.util_pct is None
        self.statuses |= {row.status} - {TickStatus.OK}

    def goes_on_with(self, row: CardTickRow, spans: tuple[Span, ...]) -> bool:
        start_ms, end_ms = (spans[0][0], spans[-1][1]) if spans else (row.at_ms, row.at_ms)
        return (
            0 <= start_ms - self.until_ms <= max(1, end_ms - start_ms)
            and (row.verdict, row.rule) == (self.verdict, self.rule)
            and [one.hold for one in row.holds] == [one.hold for one in self.holds]
            and self.listed == (row.evidence.holders is not None)
        )


class Stretches:
    """Grows with one card's ticks, which come in time order."""

    def __init__(self) -> None:
        self.found: list[TickStretch] = []

    def add(self, row: CardTickRow, spans: tuple[Span, ...], *, counted: bool = True) -> None:
        """One tick with the time it covers within the window."""
        if not self.found or not self.found[-1].goes_on_with(row, spans):
            since_ms = spans[0][0] if spans else row.at_ms
            listed = row.evidence.holders is not None
            self.found.append(TickStretch(since_ms, since_ms, row.verdict, row.rule, row.holds, listed))
        self.found[-1].add(row, spans, counted=counted)


def _wider(known: Optional[_Range], value: Optional[int]) -> Optional[_Range]:
    if value is None:
        return known
    return (value, value) if known is None else (min(known[0], value), max(known[1], value))
