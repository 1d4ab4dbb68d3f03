"""The one rule that turns a card's readings into a state. Pure.

    CardReading -> evidence_of -> Evidence -> classify -> Verdict

Evidence holds no threshold, so stored evidence can be judged again under another rule.
"""

from __future__ import annotations

from typing import Optional

from gua.model import (
    DEFAULT_RULE,
    READING_GRAPHICS,
    READING_MPS,
    CardReading,
    Evidence,
    FaultKind,
    GpuProcess,
    MemorySource,
    ProcessType,
    Reason,
    Rule,
    State,
    Verdict,
)

_ACTIVE = Verdict(State.ACTIVE)
_IDLE_HELD = Verdict(State.IDLE_HELD)
_TRULY_IDLE = Verdict(State.TRULY_IDLE)


def evidence_of(reading: CardReading) -> Evidence:
    """What one card's reading says for classification; nothing is guessed where a reading failed."""
    if reading.absent is not None:
        return Evidence(absent=reading.absent, mig=reading.mig is not None)
    listed = _believed_processes(reading)
    graphics = [p for p in listed or () if p.type is ProcessType.GRAPHICS]
    holding = [p for p in listed or () if p.type is not ProcessType.GRAPHICS]
    return Evidence(
        util_pct=reading.util_pct,
        holders=None if listed is None else len(holding),
        held_mb=_known_mb(holding),
        held_unknown=any(p.memory_mb is None for p in holding),
        unattributed_mb=_unattributed_mb(reading, listed),
        graphics_unknown=_failed(reading, READING_GRAPHICS) or any(p.memory_mb is None for p in graphics),
        memory_v1=reading.memory_source is MemorySource.V1,
        unified=reading.memory_source is MemorySource.UNIFIED,
        mig=reading.mig is not None,
    )


def classify(evidence: Evidence, rule: Rule = DEFAULT_RULE) -> Verdict:
    """The state of one card-tick, or UNKNOWN with the reason why it cannot be told.

    Utilisation at the threshold decides alone. Below it, who holds the card must be known: a list that could not
    be read never makes a card idle.
    """
    if evidence.absent is not None:
        return _unknown(evidence.absent)
    if evidence.util_pct is None:
        return _without_util(evidence, rule)
    if evidence.util_pct >= rule.active_util_pct:
        return _ACTIVE
    if evidence.holders is None:
        return _unknown(Reason.PROCESSES_UNAVAILABLE)
    return _held_or_free(evidence, rule)


def _held_or_free(evidence: Evidence, rule: Rule) -> Verdict:
    if evidence.holders and (evidence.held_unknown or evidence.held_mb > rule.held_mb):
        return _IDLE_HELD
    if evidence.unified:
        return _TRULY_IDLE
    if evidence.unattributed_mb is None:
        return _unknown(Reason.MEMORY_UNAVAILABLE)
    if evidence.unattributed_mb <= _unattributed_limit_mb(evidence, rule):
        return _TRULY_IDLE
    return _unknown(Reason.MEMORY_UNAVAILABLE) if evidence.graphics_unknown else _IDLE_HELD


def _without_util(evidence: Evidence, rule: Rule) -> Verdict:
    """An instance of a MIG card cannot measure utilisation, but one that nobody holds is idle all the same."""
    if evidence.mig and evidence.holders == 0 and _held_or_free(evidence, rule) == _TRULY_IDLE:
        return _TRULY_IDLE
    return _unknown(Reason.UTIL_UNAVAILABLE)


def _unattributed_limit_mb(evidence: Evidence, rule: Rule) -> int:
    return rule.unattributed_v1_mb if evidence.memory_v1 else rule.unattributed_mb


def _unknown(reason: Reason) -> Verdict:
    return Verdict(State.UNKNOWN, reason)


def _believed_processes(reading: CardReading) -> Optional[tuple[GpuProcess, ...]]:
    """The listed processes; None when a list that this card supports failed, so holders may be missing from it."""
    return None if _failed(reading, READING_MPS) else reading.processes


def _failed(reading: CardReading, key: str) -> bool:
    fault = reading.faults.get(key)
    return fault is not None and fault.kind is FaultKind.FAILED


def _known_mb(processes: list[GpuProcess]) -> int:
    return sum(p.memory_mb for p in processes if p.memory_mb is not None)


def _unattributed_mb(reading: CardReading, listed: Optional[tuple[GpuProcess, ...]]) -> Optional[int]:
    if listed is None or reading.memory_used_mb is None or reading.memory_source is MemorySource.UNIFIED:
        return None
    return max(0, reading.memory_used_mb - _known_mb(list(listed)))
