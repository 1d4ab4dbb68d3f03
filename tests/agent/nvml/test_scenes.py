"""Hosts as they were seen in the field, from the driver's answers to the state of each card."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Optional

import pytest

from gua.classify import classify, evidence_of
from gua.model import CardReading, FaultKind, KnownDevice, MemorySource, Reason, Snapshot, State, TickStatus
from gua.nvml.client import WorkerClient
from gua.reconcile import reconcile
from tests.nvml_stub import GIB, MIB, Card, Error, Instance, Process, Scene

ReadScene = Callable[[Scene], Snapshot]

HANDLE = "nvmlDeviceGetHandleByIndex"
UTIL, MEMORY = "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo"
COMPUTE = "nvmlDeviceGetComputeRunningProcesses"


def _state(reading: CardReading) -> tuple[State, Optional[Reason]]:
    verdict = classify(evidence_of(reading))
    return verdict.state, verdict.reason


def _known(snapshot: Snapshot) -> list[KnownDevice]:
    return [
        KnownDevice(card.uuid, card.index, card.pci_bus_id, card.name, card.memory_total_mb, card.mig, 0, 0)
        for card in snapshot.cards
    ]


def _four(*sick: Error) -> Scene:
    return Scene(cards=tuple(Card(f"GPU-{n}", util=50, rules=sick if n == 2 else ()) for n in range(4)))


@pytest.mark.parametrize(
    "sick",
    [
        (Error(HANDLE, "GPU_IS_LOST"),),
        (Error(HANDLE, "UNKNOWN"),),
        (Error(UTIL, "GPU_IS_LOST"), Error(MEMORY, "GPU_IS_LOST")),
    ],
    ids=["one card lost", "one handle unknown", "one card lost in mid-sample"],
)
def test_one_sick_card_of_four_is_told_with_its_uuid_and_hides_no_other(
    read_scene: ReadScene, sick: tuple[Error, ...]
) -> None:
    known = _known(read_scene(_four()))
    tick = reconcile(read_scene(_four(*sick)), known)
    states = {card.uuid: _state(card) for card in tick.cards}
    active = (State.ACTIVE, None)
    assert states == {
        "GPU-0": active, "GPU-1": active, "GPU-2": (State.UNKNOWN, Reason.CARD_LOST), "GPU-3": active,
    }  # fmt: skip
    assert tick.status is TickStatus.PARTIAL


def test_card_that_drops_out_without_an_error_is_missing_and_indexes_move_no_history(read_scene: ReadScene) -> None:
    cards = tuple(Card(f"GPU-{letter}", util=n, pci=f"00000000:0{n}:00.0") for n, letter in enumerate("ABCD"))
    known = _known(read_scene(Scene(cards=cards)))
    tick = reconcile(read_scene(Scene(cards=(cards[0], *cards[2:]))), known)
    assert [(card.uuid, card.index, card.util_pct, card.absent) for card in tick.cards] == [
        ("GPU-A", 0, 0, None),
        ("GPU-C", 1, 2, None),
        ("GPU-D", 2, 3, None),
        ("GPU-B", 1, None, Reason.CARD_MISSING),
    ]


@pytest.mark.parametrize("with_v2", [True, False])
def test_empty_card_whose_driver_reserves_memory_is_truly_idle(read_scene: ReadScene, with_v2: bool) -> None:
    rules = () if with_v2 else (Error(f"{MEMORY}_v2", "FUNCTION_NOT_FOUND"),)
    card = Card("GPU-a", memory_used=0, memory_reserved=322_961_408, rules=rules)
    (reading,) = read_scene(Scene(cards=(card,))).cards
    assert (reading.memory_used_mb, reading.memory_source) == (
        (0, MemorySource.V2) if with_v2 else (308, MemorySource.V1)
    )
    assert _state(reading) == (State.TRULY_IDLE, None)


def test_card_without_a_process_list_is_unknown_and_never_idle(read_scene: ReadScene) -> None:
    card = Card("GPU-a", util=0, memory_used=30_000_000_000, rules=(Error(COMPUTE, "FUNCTION_NOT_FOUND"),))
    (reading,) = read_scene(Scene(cards=(card,))).cards
    assert _state(reading) == (State.UNKNOWN, Reason.PROCESSES_UNAVAILABLE)


def test_mig_instance_with_a_process_and_without_utilisation_is_unknown_and_never_idle(
    read_scene: ReadScene,
) -> None:
    instance = Instance(
        "MIG-a", gpu_instance=1, memory_total=40 * GIB, memory_used=20_000_000_000,
        processes=(Process(4242, None, gpu_instance=1, compute_instance=0),),
    )  # fmt: skip
    (reading,) = read_scene(Scene(cards=(Card("GPU-cut", util=None, mig_max=7, instances=(instance,)),))).cards
    assert reading.processes is not None
    assert [(process.pid, process.memory_mb) for process in reading.processes] == [(4242, None)]
    assert reading.faults["util"].kind is FaultKind.UNSUPPORTED
    assert _state(reading) == (State.UNKNOWN, Reason.UTIL_UNAVAILABLE)


def test_list_of_scrambled_pids_is_not_believed_in_any_part(read_scene: ReadScene) -> None:
    pids = (1184, 0, 4294967295, 4294967295, 16040, 0, 4294967295)
    card = Card("GPU-a", memory_used=30 * GIB, processes=tuple(Process(pid, GIB) for pid in pids))
    (reading,) = read_scene(Scene(cards=(card,))).cards
    assert reading.processes is None
    assert _state(reading) == (State.UNKNOWN, Reason.PROCESSES_UNAVAILABLE)


@pytest.mark.parametrize("memory", [None, 18446744073709551615, 9223372036854775807])
def test_process_of_unknown_memory_holds_its_card(read_scene: ReadScene, memory: Optional[int]) -> None:
    (reading,) = read_scene(Scene(cards=(Card("GPU-a", util=0, processes=(Process(4242, memory),)),))).cards
    assert reading.processes is not None
    assert [(process.pid, process.memory_mb) for process in reading.processes] == [(4242, None)]
    assert _state(reading) == (State.IDLE_HELD, None)


@pytest.mark.parametrize("total", [None, 0])
def test_board_that_shares_the_hosts_memory_is_held_by_its_processes(
    read_scene: ReadScene, total: Optional[int]
) -> None:
    def board(*processes: Process) -> Scene:
        card = Card("GPU-a", name="NVIDIA GB10", memory_total=total, memory_reserved=0, processes=processes)
        return Scene(cards=(card,))

    (held,) = read_scene(board(Process(4242, 6_442_450_944))).cards
    assert (held.memory_total_mb, held.memory_used_mb, held.memory_source) == (None, None, MemorySource.UNIFIED)
    assert _state(held) == (State.IDLE_HELD, None)
    assert _state(read_scene(board()).cards[0]) == (State.TRULY_IDLE, None)


@pytest.mark.parametrize("total", [None, 0])
def test_discrete_card_that_does_not_tell_its_memory_is_not_taken_for_free(
    read_scene: ReadScene, total: Optional[int]
) -> None:
    card = Card("GPU-a", name="NVIDIA A40-8Q", memory_total=total, memory_reserved=0)
    (reading,) = read_scene(Scene(cards=(card,))).cards
    assert (reading.memory_source, reading.memory_total_mb) == (None, None)
    assert _state(reading) == (State.UNKNOWN, Reason.MEMORY_UNAVAILABLE)


def test_driver_that_comes_after_the_service_is_picked_up(nvml_scene: Path, client: WorkerClient) -> None:
    Scene(rules=(Error("nvmlInit", "LIBRARY_NOT_FOUND"),)).save(nvml_scene)
    for _ in range(3):
        fault = client.sample().fault
        assert fault is not None
        assert fault.error == "LIBRARY_NOT_FOUND"
    Scene(cards=(Card("GPU-a", memory_used=5 * MIB),)).save(nvml_scene)
    assert any(client.sample().cards for _ in range(2))
