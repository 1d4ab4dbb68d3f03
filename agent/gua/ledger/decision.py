"""Why a card-tick was given its state: the comparisons that were made, in order, the last of them deciding. Pure.

It follows the one rule of gua.classify step by step; a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from gua.classify import classify
from gua.model import Evidence, Rule, State
from gua.report.wording import reason_text


@dataclass(frozen=True)
class Comparison:
    """One reading beside one threshold. threshold: a field of Rule. over: it is on the threshold's upper side."""

    threshold: str
    value: int
    limit: int
    over: bool

    @property
    def unit(self) -> str:
        return "%" if self.threshold.endswith("_pct") else "MB"

    @property
    def margin(self) -> int:
        return abs(self.value - self.limit)

    def __str__(self) -> str:
        what = _WHAT[self.threshold].format(value=f"{self.value:,} {self.unit}")
        limit = f"{self.limit:,} {self.unit}"
        points = "points" if self.unit == "%" else "MB"
        if self.margin == 0:
            return f"{what}, just the threshold of {limit}, which {_AT[self.threshold]}"
        return f"{what}, {self.margin:,} {points} {'above' if self.over else 'below'} the threshold of {limit}"


_UNATTRIBUTED = "{value} are used that no listed process accounts for"
_WHAT = {
    "active_util_pct": "utilisation {value}",
    "held_mb": "compute processes hold {value}",
    "unattributed_mb": _UNATTRIBUTED,
    "unattributed_v1_mb": _UNATTRIBUTED,
}
_AT = {
    "active_util_pct": "counts as active",
    "held_mb": "does not hold a card",
    "unattributed_mb": "does not hold a card",
    "unattributed_v1_mb": "does not hold a card",
}


@dataclass(frozen=True)
class Decision:
    """comparisons: none where a missing reading decided. because: what was not compared and counts, in words."""

    comparisons: tuple[Comparison, ...]
    because: Optional[str]
    state: State

    @property
    def text(self) -> str:
        """One sentence, without a full stop."""
        parts = [str(one) for one in self.comparisons] + ([self.because] if self.because else [])
        return f"{'; '.join(parts)}: {self.state.value}"


def decide(evidence: Evidence, rule: Rule) -> Decision:
    """How `rule` comes to the state it gives this evidence."""
    comparisons, because = _steps(evidence, rule)
    return Decision(tuple(comparisons), because, classify(evidence, rule).state)


def _steps(evidence: Evidence, rule: Rule) -> tuple[list[Comparison], Optional[str]]:
    if evidence.absent is not None:
        return [], reason_text(evidence.absent.value)
    if evidence.util_pct is None:
        return _without_util(evidence, rule)
    active = evidence.util_pct >= rule.active_util_pct
    util = Comparison("active_util_pct", evidence.util_pct, rule.active_util_pct, active)
    if active:
        return [util], None
    if evidence.holders is None:
        return [util], "the lists of processes could not be read or believed, so who holds the card is not known"
    more, because = _held_or_free(evidence, rule)
    return [util, *more], because


def _without_util(evidence: Evidence, rule: Rule) -> tuple[list[Comparison], Optional[str]]:
    if evidence.mig and evidence.holders == 0 and classify(evidence, rule).state is State.TRULY_IDLE:
        comparisons, because = _held_or_free(evidence, rule)
        nobody = "a MIG instance cannot measure its utilisation, but no process is listed on it"
        return comparisons, f"{nobody}; {because}" if because else nobody
    return [], "utilisation could not be read, so active or not cannot be told"


def _held_or_free(evidence: Evidence, rule: Rule) -> tuple[list[Comparison], Optional[str]]:
    steps: list[Comparison] = []
    if evidence.holders:
        over = evidence.held_mb > rule.held_mb
        if evidence.held_unknown and not over:
            return [], "a listed compute process holds an amount that the driver does not say, which counts as held"
        steps.append(Comparison("held_mb", evidence.held_mb, rule.held_mb, over))
        if over:
            return steps, None
    if evidence.unified:
        return steps, "this board shares its memory with the CPU, so only listed processes count"
    if evidence.unattributed_mb is None:
        return steps, "the memory in use could not be read, so whether anybody holds the card is not known"
    threshold = "unattributed_v1_mb" if evidence.memory_v1 else "unattributed_mb"
    limit = rule.unattributed_v1_mb if evidence.memory_v1 else rule.unattributed_mb
    over = evidence.unattributed_mb > limit
    steps.append(Comparison(threshold, evidence.unattributed_mb, limit, over))
    if over and evidence.graphics_unknown:
        return steps, "what processes that only draw use of it is not known, so it may be theirs"
    return steps, None
