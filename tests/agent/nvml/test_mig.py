"""MIG instances as cards of their own: every fault of card and instance, whose process is whose, and activity."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Callable, Optional

import pytest

from gua.clock import SystemClock
from gua.model import CardReading, FaultKind, GpuProcess, ProcessType, Snapshot, UtilSource
from gua.nvml.client import WorkerClient
from gua.nvml.instances import Place, share_out
from gua.nvml.processes import Entry, Lists
from tests.nvml_stub import ERRORS, GIB, Card, Counters, Error, Instance, Process, Scene

ReadScene = Callable[[Scene], Snapshot]

MIG_CALLS = [
    "nvmlDeviceGetMigDeviceHandleByIndex",
    "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetMigMode",
    "nvmlGpmMigSampleGet",
    "nvmlGpmQueryDeviceSupport",
    "nvmlDeviceGetComputeRunningProcesses",
]
INSTANCE_CALLS = [
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetName",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGpuInstanceId",
    "nvmlDeviceGetComputeInstanceId",
    "nvmlGpmMetricsGet",
]


def _mig_scene(step: int, of_card: Iterable[Error] = (), of_instance: Iterable[Error] = ()) -> Scene:
    counters = Counters(100.0 * step, 30.0 * step, 10.0 * step)
    instances = tuple(
        Instance(
            f"MIG-{n}",
            slot=n,
            gpu_instance=7 + n,
            processes=(Process(50 + n, GIB, gpu_instance=7 + n),),
            counters=counters,
            rules=tuple(of_instance) if n == 1 else (),
        )
        for n in range(3)
    )
    parent = Card("GPU-cut", util=None, mig_max=7, gpm=True, instances=instances, rules=tuple(of_card))
    return Scene(cards=(Card("GPU-a", util=5), parent, Card("GPU-b", util=6)))


def _mig_states(snapshot: Snapshot) -> dict[str, tuple[Optional[int], Optional[int]]]:
    return {
        card.uuid: (card.util_pct, None if card.processes is None else len(card.processes)) for card in snapshot.cards
    }


MIG_WHOLE = {"GPU-a": (5, 0), "MIG-0": (30, 1), "MIG-1": (30, 1), "MIG-2": (30, 1), "GPU-b": (6, 0)}


def test_every_error_of_a_card_with_instances_leaves_the_other_cards(nvml_scene: Path) -> None:
    client = WorkerClient(clock=SystemClock(), deadline_s=60.0)
    step = 0
    try:
        for call in MIG_CALLS:
            for error in ERRORS:
                step += 1
                _mig_scene(step, of_card=[Error(call, error)]).save(nvml_scene)
                snapshot = client.sample()
                states = _mig_states(snapshot)
                assert snapshot.fault is None, (call, error)
                assert (states["GPU-a"], states["GPU-b"]) == ((5, 0), (6, 0)), (call, error)
                assert "GPU-cut" not in states or (call, step) == ("nvmlDeviceGetMigMode", 1), (call, error)
        step = _assert_mig_recovers(client, nvml_scene, step)
    finally:
        client.close()


def test_every_error_of_one_instance_leaves_its_neighbours(nvml_scene: Path) -> None:
    client = WorkerClient(clock=SystemClock(), deadline_s=60.0)
    step = 0
    try:
        step = _assert_mig_recovers(client, nvml_scene, step)
        for call in INSTANCE_CALLS:
            for error in ERRORS:
                step += 1
                _mig_scene(step, of_instance=[Error(call, error)]).save(nvml_scene)
                states = _mig_states(client.sample())
                others = {uuid: state for uuid, state in states.items() if uuid != "MIG-1"}
                assert others == {uuid: state for uuid, state in MIG_WHOLE.items() if uuid != "MIG-1"}, (call, error)
        _assert_mig_recovers(client, nvml_scene, step)
    finally:
        client.close()


def _assert_mig_recovers(client: WorkerClient, scene: Path, step: int) -> int:
    for _ in range(3):
        step += 1
        _mig_scene(step).save(scene)
        states = _mig_states(client.sample())
    assert states == MIG_WHOLE
    return step


def _one(counters: Optional[Counters], *rules: Error, gpm: bool = True) -> Scene:
    instance = Instance("MIG-1", counters=counters, rules=rules)
    return Scene(cards=(Card("GPU-cut", mig_max=7, gpm=gpm, instances=(instance,)),))


def _told(snapshot: Snapshot) -> tuple[Optional[int], Optional[UtilSource], Optional[str]]:
    (card,) = snapshot.cards
    fault = card.faults.get("util")
    assert fault is None or fault.kind is FaultKind.UNSUPPORTED
    return card.util_pct, card.util_source, None if fault is None else fault.error


def test_activity_of_an_instance_is_known_from_the_second_sample_on(read_scene: ReadScene) -> None:
    assert _told(read_scene(_one(Counters(100, 10, 10)))) == (None, None, "FIRST_SAMPLE")
    assert _told(read_scene(_one(Counters(200, 35, 20)))) == (25, UtilSource.GPM, None)
    assert _told(read_scene(_one(Counters(300, 35, 20)))) == (0, UtilSource.GPM, None)


def test_work_that_only_one_of_the_counters_counts_is_work(read_scene: ReadScene) -> None:
    read_scene(_one(Counters(100, 0, 0)))
    assert _told(read_scene(_one(Counters(200, 0, 40)))) == (40, UtilSource.GPM, None)


def test_instance_of_a_card_without_counters_has_no_known_activity(read_scene: ReadScene) -> None:
    for time in (100, 200):
        assert _told(read_scene(_one(Counters(time, 0, 0), gpm=False))) == (None, None, "NOT_SUPPORTED")


def test_counters_that_this_user_may_not_read_are_no_fault(read_scene: ReadScene) -> None:
    scene = _one(Counters(100, 0, 0))
    card = Card("GPU-cut", mig_max=7, gpm=True, instances=scene.cards[0].instances)
    denied = Card(**{**vars(card), "rules": (Error("nvmlGpmMigSampleGet", "NO_PERMISSION"),)})
    assert _told(read_scene(Scene(cards=(denied,)))) == (None, None, "NO_PERMISSION")


@pytest.mark.parametrize("after", [Counters(200, 500, 0), Counters(200, -10, -10)])
def test_impossible_activity_of_an_instance_is_a_failed_reading(read_scene: ReadScene, after: Counters) -> None:
    read_scene(_one(Counters(100, 10, 10)))
    (card,) = read_scene(_one(after)).cards
    assert (card.util_pct, card.faults["util"].error) == (None, "IMPOSSIBLE_VALUE")


def test_instance_that_came_back_is_not_measured_against_its_predecessor(read_scene: ReadScene) -> None:
    read_scene(_one(Counters(100, 0, 0)))
    assert read_scene(Scene(cards=(Card("GPU-cut", mig_max=7, gpm=True),))).cards == ()
    assert _told(read_scene(_one(Counters(10, 0, 0)))) == (None, None, "FIRST_SAMPLE")


def test_memory_of_instances_that_are_gone_is_given_back(read_scene: ReadScene) -> None:
    """The stub refuses a 257th snapshot of counters that nobody gave back."""
    for n in range(300):
        instance = Instance(f"MIG-{n}", counters=Counters(n, 0, 0))
        read_scene(Scene(cards=(Card("GPU-cut", mig_max=7, gpm=True, instances=(instance,)),)))
    read_scene(_one(Counters(1, 0, 0)))
    assert _told(read_scene(_one(Counters(2, 1, 0)))) == (100, UtilSource.GPM, None)


def test_compute_instances_that_share_a_gpu_instance_are_not_told_apart_by_its_counters(
    read_scene: ReadScene,
) -> None:
    def scene(time: int) -> Scene:
        halves = tuple(
            Instance(f"MIG-{n}", slot=n, gpu_instance=3, compute_instance=n, counters=Counters(time, time, time))
            for n in range(2)
        )
        return Scene(cards=(Card("GPU-cut", mig_max=7, gpm=True, instances=halves),))

    read_scene(scene(100))
    assert [(card.util_pct, card.faults["util"].error) for card in read_scene(scene(200)).cards] == [
        (None, "MIG_INSTANCE")
    ] * 2


@pytest.mark.parametrize("on_parent", [False, True])
def test_processes_belong_to_their_instance_wherever_the_driver_lists_them(
    read_scene: ReadScene, on_parent: bool
) -> None:
    instances = tuple(
        Instance(f"MIG-{n}", slot=n, gpu_instance=7 + n, processes=(Process(50 + n, GIB, gpu_instance=7 + n),))
        for n in range(2)
    )
    free = Instance("MIG-free", slot=2, gpu_instance=9)
    card = Card("GPU-cut", mig_max=7, parent_lists=on_parent, instances=(*instances, free))
    cards = read_scene(Scene(cards=(card,))).cards
    assert [_pids(card) for card in cards] == [[50], [51], []]


def test_process_without_an_instance_makes_no_instance_free(read_scene: ReadScene) -> None:
    held = Instance("MIG-a", slot=0, gpu_instance=7, processes=(Process(50, GIB),))
    card = Card("GPU-cut", mig_max=7, parent_lists=True, instances=(held, Instance("MIG-b", slot=1, gpu_instance=8)))
    cards = read_scene(Scene(cards=(card,))).cards
    assert [(card.processes, card.faults["compute_processes"].error) for card in cards] == [
        (None, "NO_INSTANCE_ID")
    ] * 2


def test_empty_list_is_not_believed_while_the_list_of_the_card_fails(read_scene: ReadScene) -> None:
    def scene(*rules: Error) -> Scene:
        held = Instance("MIG-a", slot=0, gpu_instance=7, processes=(Process(50, GIB, gpu_instance=7),))
        empty = Instance("MIG-b", slot=1, gpu_instance=8)
        return Scene(cards=(Card("GPU-cut", mig_max=7, instances=(held, empty), rules=rules),))

    failing = Error("nvmlDeviceGetComputeRunningProcesses", "UNKNOWN")
    assert [_pids(card) for card in read_scene(scene(failing)).cards] == [[50], None]
    unsupported = Error("nvmlDeviceGetComputeRunningProcesses", "NOT_SUPPORTED")
    assert [_pids(card) for card in read_scene(scene(unsupported)).cards] == [[50], []]


def test_mig_mode_that_fails_once_ends_no_instances_history(read_scene: ReadScene) -> None:
    instances = (Instance("MIG-a"),)
    read_scene(Scene(cards=(Card("GPU-cut", mig_max=7, instances=instances),)))
    failing = (Error("nvmlDeviceGetMigMode", "UNKNOWN"),)
    snapshot = read_scene(Scene(cards=(Card("GPU-cut", mig_max=7, instances=instances, rules=failing),)))
    assert ([card.uuid for card in snapshot.cards], snapshot.mig_parents) == (["MIG-a"], ("GPU-cut",))


def test_card_that_never_told_whether_it_is_cut_is_taken_for_neither(read_scene: ReadScene) -> None:
    failing = (Error("nvmlDeviceGetMigMode", "UNKNOWN"),)
    cut = Card("GPU-cut", mig_max=7, instances=(Instance("MIG-a"),), rules=failing)
    snapshot = read_scene(Scene(cards=(cut, Card("GPU-whole", rules=failing))))
    assert [card.uuid for card in snapshot.cards] == ["GPU-whole"]
    assert [(slot.uuid, slot.fault.error) for slot in snapshot.lost] == [("GPU-cut", "UNKNOWN")]


def _pids(card: CardReading) -> Optional[list[int]]:
    return None if card.processes is None else [process.pid for process in card.processes]


def _entry(pid: int, gpu_instance: Optional[int] = None, compute_instance: Optional[int] = None) -> Entry:
    return Entry(GpuProcess(pid, ProcessType.COMPUTE, 1), gpu_instance, compute_instance)


def _shared(own: list[list[Entry]], places: list[Place], card: list[Entry]) -> list[list[int]]:
    shared = share_out([Lists(tuple(entries)) for entries in own], places, Lists(tuple(card)))
    return [sorted(entry.process.pid for entry in lists.entries) for lists in shared]


def test_instance_does_not_take_a_neighbours_process_from_its_list() -> None:
    both = [_entry(1, 7, 0), _entry(2, 8, 0)]
    assert _shared([both, both], [Place(7, 0), Place(8, 0)], []) == [[1], [2]]


def test_process_that_names_no_known_instance_stays_where_it_is_listed() -> None:
    assert _shared([[_entry(1, 0, 0), _entry(2)], []], [Place(7, 0), Place(8, 0)], [_entry(1, 0, 0)]) == [[1, 2], []]


def test_compute_instances_of_one_gpu_instance_have_their_own_processes() -> None:
    card = [_entry(1, 7, 0), _entry(2, 7, 1), _entry(3, 7)]
    assert _shared([[], []], [Place(7, 0), Place(7, 1)], card) == [[1, 3], [2, 3]]


def test_instance_of_unknown_place_keeps_its_own_list() -> None:
    assert _shared([[_entry(1, 7, 0)]], [Place(None, None)], [_entry(1, 7, 0)]) == [[1]]


def test_an_impossible_number_of_instances_costs_its_card_and_not_the_time_of_the_others(
    read_scene: ReadScene,
) -> None:
    plain = Card("GPU-a", util=5)
    snapshot = read_scene(Scene(cards=(plain, Card("GPU-cut", mig_max=2**32 - 1), Card("GPU-b", util=6))))
    assert _mig_states(snapshot) == {"GPU-a": (5, 0), "GPU-b": (6, 0)}
    assert [(slot.uuid, slot.fault.error) for slot in snapshot.lost] == [("GPU-cut", "IMPOSSIBLE_VALUE")]


def test_instances_that_tell_the_same_uuid_are_lost_with_their_card_named(read_scene: ReadScene) -> None:
    twins = tuple(Instance("MIG-1", slot=slot, gpu_instance=slot) for slot in range(2))
    snapshot = read_scene(Scene(cards=(Card("GPU-cut", mig_max=7, instances=(*twins, Instance("MIG-2", slot=2))),)))
    assert [card.uuid for card in snapshot.cards] == ["MIG-2"]
    assert {(slot.index, slot.uuid, slot.fault.error) for slot in snapshot.lost} == {(0, "GPU-cut", "NOT_UNIQUE")}
