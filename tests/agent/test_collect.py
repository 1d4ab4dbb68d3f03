from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Optional

import pytest

from gua.collect import Collector
from gua.model import (
    DEFAULT_RULE,
    CardReading,
    Fault,
    FaultKind,
    GpuProcess,
    KnownDevice,
    MemorySource,
    ProcessIdentity,
    ProcessType,
    Reason,
    Rule,
    Snapshot,
    State,
    TickStatus,
    UserSource,
)
from gua.rulebook import ModelRule, RuleBook

NOTEBOOK = GpuProcess(42, ProcessType.COMPUTE, 4000)
CARD = CardReading("GPU-a", 0, memory_used_mb=4000, memory_source=MemorySource.V2, util_pct=1, processes=(NOTEBOOK,))


class OneSnapshot:
    """A sampler that always answers the same."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.closed = False

    def sample(self) -> Snapshot:
        return self._snapshot

    def close(self) -> bool:
        self.closed = True
        return True


class Everybody:
    """Everything belongs to alice; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def identify(self, pids: Iterable[int]) -> Mapping[int, ProcessIdentity]:
        self.asked = list(pids)
        return {pid: ProcessIdentity("boot", pid, 1, "python", "alice", UserSource.OWNER) for pid in self.asked}


def test_a_tick_holds_what_was_read_who_held_it_and_what_that_means() -> None:
    people = Everybody()
    collector = Collector(OneSnapshot(Snapshot(cards=(CARD,), driver_version="570.1")), people, RuleBook())
    tick = collector.collect(ts_ms=1000, cover_ms=30_000, known=())
    assert (tick.ts_ms, tick.cover_ms, tick.status, tick.driver_version) == (1000, 30_000, TickStatus.OK, "570.1")
    (card,) = tick.cards
    assert card.verdict.state is State.IDLE_HELD
    assert [(holder.process, holder.identity.user) for holder in card.holders] == [(NOTEBOOK, "alice")]
    assert people.asked == [42]


def test_absent_cards_are_in_the_tick_and_nobody_holds_them() -> None:
    known = KnownDevice("GPU-b", 1, None, "H100", 81559, None, 0, None)
    tick = Collector(OneSnapshot(Snapshot(cards=(CARD,))), Everybody(), RuleBook()).collect(
        ts_ms=0, cover_ms=0, known=[known]
    )
    assert tick.cards[1].verdict.reason is Reason.CARD_MISSING
    assert tick.cards[1].holders == ()
    assert tick.status is TickStatus.PARTIAL


def test_a_list_that_was_not_read_names_nobody_and_never_makes_a_card_idle() -> None:
    fault = Fault("nvmlDeviceGetComputeRunningProcesses_v3", "UNKNOWN", FaultKind.FAILED)
    card = CardReading("GPU-a", 0, util_pct=0, faults={"compute_processes": fault})
    people = Everybody()
    tick = Collector(OneSnapshot(Snapshot(cards=(card,))), people, RuleBook()).collect(ts_ms=0, cover_ms=0, known=())
    assert tick.cards[0].verdict.reason is Reason.PROCESSES_UNAVAILABLE
    assert people.asked == []


def test_a_driver_fault_is_kept_with_the_tick() -> None:
    fault = Fault("nvmlInit", "DRIVER_NOT_LOADED", FaultKind.FAILED)
    sampler = OneSnapshot(Snapshot(fault=fault))
    collector = Collector(sampler, Everybody(), RuleBook())
    assert collector.collect(ts_ms=0, cover_ms=0, known=()).fault == fault
    collector.close()
    assert sampler.closed


LENIENT = replace(DEFAULT_RULE, held_mb=9_000)


@pytest.mark.parametrize(
    ("name", "known_name", "own"),
    [
        ("Tesla T4", None, LENIENT),
        (None, "Tesla T4", LENIENT),
        ("NVIDIA H100", "Tesla T4", None),
        ("Tesla V100", None, None),  # its own rule says the same as the host's
        (None, None, None),
    ],
)
def test_a_card_is_judged_by_the_rule_of_its_model_which_the_tick_then_carries(
    name: Optional[str], known_name: Optional[str], own: Optional[Rule]
) -> None:
    rules = RuleBook(DEFAULT_RULE, (ModelRule("*t4", LENIENT), ModelRule("*V100*", DEFAULT_RULE)))
    known = KnownDevice("GPU-a", 0, None, known_name, None, None, 0, 1)
    sampler = OneSnapshot(Snapshot(cards=(replace(CARD, name=name, memory_used_mb=4000),)))
    (card,) = Collector(sampler, Everybody(), rules).collect(ts_ms=0, cover_ms=0, known=[known]).cards
    assert card.rule == own
    assert card.verdict.state is (State.IDLE_HELD if own is None else State.TRULY_IDLE)
