from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.classify import classify, evidence_of
from gua.model import (
    DEFAULT_RULE,
    READING_GRAPHICS,
    READING_MPS,
    CardReading,
    Evidence,
    Fault,
    FaultKind,
    GpuProcess,
    MemorySource,
    Mig,
    ProcessType,
    Reason,
    Rule,
    State,
)

FREE = Evidence(util_pct=0, holders=0, unattributed_mb=0)
HELD = Evidence(util_pct=0, holders=1, held_mb=4_000, unattributed_mb=0)
INSTANCE = Evidence(util_pct=None, holders=0, unattributed_mb=12, mig=True)


@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        (replace(FREE, util_pct=9), State.TRULY_IDLE),
        (replace(FREE, util_pct=10), State.ACTIVE),
        (replace(FREE, util_pct=100, holders=None, unattributed_mb=None), State.ACTIVE),
        (replace(HELD, held_mb=100), State.TRULY_IDLE),
        (replace(HELD, held_mb=101), State.IDLE_HELD),
        (replace(HELD, util_pct=9), State.IDLE_HELD),
        (replace(HELD, util_pct=10), State.ACTIVE),
        (replace(HELD, held_mb=0, held_unknown=True), State.IDLE_HELD),
        (replace(HELD, unattributed_mb=None), State.IDLE_HELD),
        (replace(HELD, held_mb=50, unattributed_mb=501), State.IDLE_HELD),
        (replace(FREE, unattributed_mb=500), State.TRULY_IDLE),
        (replace(FREE, unattributed_mb=501), State.IDLE_HELD),
        (replace(FREE, unattributed_mb=1_500, memory_v1=True), State.TRULY_IDLE),
        (replace(FREE, unattributed_mb=1_501, memory_v1=True), State.IDLE_HELD),
        (replace(FREE, unattributed_mb=None, unified=True), State.TRULY_IDLE),
        (replace(HELD, unattributed_mb=None, unified=True), State.IDLE_HELD),
        (replace(FREE, unattributed_mb=500, graphics_unknown=True), State.TRULY_IDLE),
        (INSTANCE, State.TRULY_IDLE),
        (replace(INSTANCE, unattributed_mb=None, unified=True), State.TRULY_IDLE),
    ],
)
def test_states_at_their_boundaries(evidence: Evidence, state: State) -> None:
    assert classify(evidence).state is state
    assert classify(evidence).reason is None


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (replace(FREE, util_pct=None), Reason.UTIL_UNAVAILABLE),
        (replace(HELD, util_pct=None), Reason.UTIL_UNAVAILABLE),
        (replace(FREE, holders=None), Reason.PROCESSES_UNAVAILABLE),
        (replace(FREE, holders=None, unattributed_mb=9_000), Reason.PROCESSES_UNAVAILABLE),
        (replace(FREE, unattributed_mb=None), Reason.MEMORY_UNAVAILABLE),
        (replace(FREE, unattributed_mb=501, graphics_unknown=True), Reason.MEMORY_UNAVAILABLE),
        (replace(INSTANCE, holders=1), Reason.UTIL_UNAVAILABLE),
        (replace(INSTANCE, holders=None), Reason.UTIL_UNAVAILABLE),
        (replace(INSTANCE, unattributed_mb=501), Reason.UTIL_UNAVAILABLE),
        (replace(INSTANCE, unattributed_mb=None), Reason.UTIL_UNAVAILABLE),
        (Evidence(absent=Reason.CARD_LOST), Reason.CARD_LOST),
        (Evidence(absent=Reason.UNRESPONSIVE), Reason.UNRESPONSIVE),
    ],
)
def test_what_cannot_be_told_is_unknown_with_its_reason(evidence: Evidence, reason: Reason) -> None:
    assert classify(evidence).state is State.UNKNOWN
    assert classify(evidence).reason is reason


def optional(top: int) -> st.SearchStrategy[Optional[int]]:
    return st.none() | st.integers(0, top)


evidences = st.builds(
    Evidence,
    absent=st.none() | st.sampled_from([Reason.CARD_LOST, Reason.CARD_MISSING, Reason.DRIVER, Reason.UNRESPONSIVE]),
    util_pct=optional(100),
    holders=optional(3),
    held_mb=st.integers(0, 300),
    held_unknown=st.booleans(),
    unattributed_mb=optional(2_000),
    graphics_unknown=st.booleans(),
    memory_v1=st.booleans(),
    unified=st.booleans(),
    mig=st.booleans(),
)
rules = st.builds(Rule, st.integers(1, 100), st.integers(0, 300), st.integers(0, 2_000), st.integers(0, 2_000))


@given(evidences, rules)
def test_every_evidence_has_a_state_and_only_unknown_has_a_reason(evidence: Evidence, rule: Rule) -> None:
    verdict = classify(evidence, rule)
    assert (verdict.reason is not None) == (verdict.state is State.UNKNOWN)


@given(evidences, rules)
def test_a_card_whose_holders_are_not_known_is_never_idle(evidence: Evidence, rule: Rule) -> None:
    state = classify(replace(evidence, holders=None), rule).state
    assert state not in (State.TRULY_IDLE, State.IDLE_HELD)


@given(evidences, rules)
def test_an_absent_card_is_unknown_whatever_else_is_said(evidence: Evidence, rule: Rule) -> None:
    assert classify(replace(evidence, absent=Reason.DRIVER), rule).reason is Reason.DRIVER


@given(evidences, rules, st.integers(0, 100))
def test_more_utilisation_never_leaves_active(evidence: Evidence, rule: Rule, more: int) -> None:
    if evidence.util_pct is not None and classify(evidence, rule).state is State.ACTIVE:
        busier = replace(evidence, util_pct=min(100, evidence.util_pct + more))
        assert classify(busier, rule).state is State.ACTIVE


@given(evidences, rules)
def test_only_a_mig_instance_can_be_idle_without_measured_utilisation(evidence: Evidence, rule: Rule) -> None:
    state = classify(replace(evidence, util_pct=None, mig=False), rule).state
    assert state is State.UNKNOWN


def reading(*processes: GpuProcess, **more: Any) -> CardReading:
    fields: dict[str, Any] = {
        "uuid": "GPU-a",
        "util_pct": 0,
        "memory_used_mb": 0,
        "memory_source": MemorySource.V2,
        "processes": processes,
        **more,
    }
    return CardReading(**fields)


def compute(memory_mb: Optional[int]) -> GpuProcess:
    return GpuProcess(100, ProcessType.COMPUTE, memory_mb)


def graphics(memory_mb: Optional[int]) -> GpuProcess:
    return GpuProcess(200, ProcessType.GRAPHICS, memory_mb)


def fault(key: str, kind: FaultKind) -> dict[str, Fault]:
    return {key: Fault("nvmlDeviceGetMPSComputeRunningProcesses", "UNKNOWN", kind)}


def test_a_display_does_not_hold_a_card() -> None:
    evidence = evidence_of(reading(graphics(144), memory_used_mb=169))
    assert (evidence.holders, evidence.held_mb, evidence.unattributed_mb) == (0, 0, 25)
    assert classify(evidence).state is State.TRULY_IDLE


def test_an_mps_process_holds_like_a_compute_process() -> None:
    evidence = evidence_of(reading(GpuProcess(1, ProcessType.MPS, 300), compute(200), memory_used_mb=600))
    assert (evidence.holders, evidence.held_mb, evidence.unattributed_mb) == (2, 500, 100)


def test_a_holder_without_a_known_amount_holds() -> None:
    evidence = evidence_of(reading(compute(None)))
    assert evidence.held_unknown
    assert classify(evidence).state is State.IDLE_HELD


def test_memory_that_processes_overstate_is_not_negative() -> None:
    assert evidence_of(reading(compute(900), memory_used_mb=800)).unattributed_mb == 0


def test_an_unreadable_process_list_leaves_holders_unknown() -> None:
    evidence = evidence_of(reading(processes=None, memory_used_mb=30_000))
    assert (evidence.holders, evidence.unattributed_mb) == (None, None)
    assert classify(evidence).reason is Reason.PROCESSES_UNAVAILABLE


def test_a_failed_mps_list_leaves_holders_unknown_but_an_unsupported_one_does_not() -> None:
    failed = reading(compute(500), faults=fault(READING_MPS, FaultKind.FAILED))
    unsupported = reading(compute(500), faults=fault(READING_MPS, FaultKind.UNSUPPORTED))
    assert evidence_of(failed).holders is None
    assert evidence_of(unsupported).holders == 1


@pytest.mark.parametrize(("used_mb", "state"), [(400, State.TRULY_IDLE), (900, State.UNKNOWN)])
def test_a_display_of_unknown_size_matters_only_where_it_could_tip_the_scale(used_mb: int, state: State) -> None:
    assert classify(evidence_of(reading(graphics(None), memory_used_mb=used_mb))).state is state


def test_a_failed_graphics_list_bounds_what_is_unattributed() -> None:
    failed = reading(memory_used_mb=900, faults=fault(READING_GRAPHICS, FaultKind.FAILED))
    assert evidence_of(failed).graphics_unknown
    assert classify(evidence_of(failed)).reason is Reason.MEMORY_UNAVAILABLE


def test_the_driver_reserve_in_a_v1_reading_does_not_hold() -> None:
    evidence = evidence_of(reading(memory_used_mb=308, memory_source=MemorySource.V1))
    assert evidence.memory_v1
    assert classify(evidence, replace(DEFAULT_RULE, unattributed_mb=100)).state is State.TRULY_IDLE


def test_a_board_with_unified_memory_is_decided_by_processes_alone() -> None:
    free = reading(memory_used_mb=None, memory_source=MemorySource.UNIFIED)
    held = reading(compute(6_144), memory_used_mb=None, memory_source=MemorySource.UNIFIED)
    assert classify(evidence_of(free)).state is State.TRULY_IDLE
    assert classify(evidence_of(held)).state is State.IDLE_HELD


def test_a_discrete_card_without_a_memory_reading_is_unknown() -> None:
    assert classify(evidence_of(reading(memory_used_mb=None, memory_source=None))).reason is Reason.MEMORY_UNAVAILABLE


def test_a_free_mig_instance_is_idle_and_a_held_one_unknown() -> None:
    mig = Mig("GPU-parent", "1g.10gb")
    free = reading(util_pct=None, memory_used_mb=12, mig=mig)
    held = reading(compute(None), util_pct=None, memory_used_mb=20_000, mig=mig)
    assert classify(evidence_of(free)).state is State.TRULY_IDLE
    assert classify(evidence_of(held)).reason is Reason.UTIL_UNAVAILABLE


def test_an_absent_card_carries_only_why() -> None:
    evidence = evidence_of(CardReading("GPU-a", absent=Reason.CARD_MISSING, mig=Mig("GPU-p", "1g.10gb")))
    assert evidence == Evidence(absent=Reason.CARD_MISSING, mig=True)


# util %, used MB, v1 reading, processes (type, MB) -> state; the edges of the rule as a reading meets them
C, M, G = ProcessType.COMPUTE, ProcessType.MPS, ProcessType.GRAPHICS
IDLE, HELD_STATE, BUSY = State.TRULY_IDLE, State.IDLE_HELD, State.ACTIVE


@pytest.mark.parametrize(
    ("util_pct", "used_mb", "v1", "processes", "state"),
    [
        (9, 0, False, [], IDLE),
        (10, 0, False, [], BUSY),
        (9, 100, False, [(C, 100)], IDLE),
        (9, 101, False, [(C, 101)], HELD_STATE),
        (9, 101, False, [(M, 101)], HELD_STATE),
        (9, 101, False, [(C, 50), (C, 51)], HELD_STATE),
        (10, 101, False, [(C, 101)], BUSY),
        (0, 0, False, [(C, 0)], IDLE),
        (0, 0, False, [(C, None)], HELD_STATE),
        (0, 0, False, [(M, None)], HELD_STATE),
        (0, 9_000, False, [(G, 9_000)], IDLE),
        (0, 500, False, [], IDLE),
        (0, 501, False, [], HELD_STATE),
        (0, 601, False, [(C, 100)], HELD_STATE),
        (0, 600, False, [(C, 100)], IDLE),
        (0, 9_501, False, [(G, 9_000)], HELD_STATE),
        (0, 9_500, False, [(G, 9_000)], IDLE),
        (0, 1_500, True, [], IDLE),
        (0, 1_501, True, [], HELD_STATE),
        (0, 1_601, True, [(C, 100)], HELD_STATE),
    ],
)
def test_the_edges_of_the_rule(
    util_pct: int, used_mb: int, v1: bool, processes: list[tuple[ProcessType, Optional[int]]], state: State
) -> None:
    listed = tuple(GpuProcess(pid, kind, memory_mb) for pid, (kind, memory_mb) in enumerate(processes, start=1))
    source = MemorySource.V1 if v1 else MemorySource.V2
    seen = reading(*listed, util_pct=util_pct, memory_used_mb=used_mb, memory_source=source)
    assert classify(evidence_of(seen)).state is state


@given(evidences, rules, st.integers(0, 100), st.integers(0, 100))
def test_below_the_threshold_utilisation_says_nothing_and_above_it_everything(
    evidence: Evidence, rule: Rule, one: int, other: int
) -> None:
    first, second = (classify(replace(evidence, util_pct=util), rule) for util in (one, other))
    if (one >= rule.active_util_pct) == (other >= rule.active_util_pct):
        assert first == second
    if evidence.absent is None:
        assert (first.state is State.ACTIVE) == (one >= rule.active_util_pct)


@given(evidences, rules, st.integers(0, 500), st.integers(0, 3_000))
def test_more_memory_never_frees_a_held_card(evidence: Evidence, rule: Rule, held: int, unattributed: int) -> None:
    """Nor does it make a card of unknown state idle."""
    before = classify(evidence, rule).state
    fuller = replace(
        evidence,
        held_mb=evidence.held_mb + held,
        unattributed_mb=None if evidence.unattributed_mb is None else evidence.unattributed_mb + unattributed,
    )
    if before is not State.TRULY_IDLE:
        assert classify(fuller, rule).state is not State.TRULY_IDLE


@given(evidences, rules)
def test_a_card_is_free_only_when_everything_that_could_hold_it_is_known(evidence: Evidence, rule: Rule) -> None:
    if classify(evidence, rule).state is State.TRULY_IDLE:
        assert evidence.absent is None
        assert evidence.holders is not None
        assert evidence.util_pct is not None or (evidence.mig and evidence.holders == 0)
        assert evidence.unattributed_mb is not None or evidence.unified
        assert not (evidence.holders and evidence.held_unknown)


@given(evidences, rules)
def test_a_card_is_held_only_by_somebody_or_by_memory_that_was_measured(evidence: Evidence, rule: Rule) -> None:
    if classify(evidence, rule).state is State.IDLE_HELD:
        by_processes = evidence.holders and (evidence.held_unknown or evidence.held_mb > rule.held_mb)
        by_memory = not evidence.graphics_unknown and (evidence.unattributed_mb or 0) > min(
            rule.unattributed_mb, rule.unattributed_v1_mb
        )
        assert by_processes or by_memory


@given(evidences, rules)
def test_only_the_threshold_of_its_own_memory_reading_counts(evidence: Evidence, rule: Rule) -> None:
    other = replace(rule, **{"unattributed_mb" if evidence.memory_v1 else "unattributed_v1_mb": 0})
    assert classify(evidence, other) == classify(evidence, rule)
