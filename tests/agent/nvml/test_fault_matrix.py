"""Every call that sampling makes, with every error of NVML, rubbish and silence on one of four cards.

Real child, real bindings, the C stub. One child serves nearly all cases: the scene is replaced beneath it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Optional, Union

import pytest

from gua.clock import SystemClock
from gua.model import CardReading, Fault, KnownDevice, Reason, Snapshot, TickStatus, UtilSource
from gua.nvml.client import WorkerClient
from gua.reconcile import reconcile
from tests.nvml_stub import GIB, Card, Counters, Delay, Error, Instance, Process, Samples, Scene, Use

pytestmark = pytest.mark.processes

ERRORS = [
    "UNINITIALIZED",
    "INVALID_ARGUMENT",
    "NOT_SUPPORTED",
    "NO_PERMISSION",
    "NOT_FOUND",
    "INSUFFICIENT_SIZE",
    "INSUFFICIENT_POWER",
    "DRIVER_NOT_LOADED",
    "TIMEOUT",
    "IRQ_ISSUE",
    "LIBRARY_NOT_FOUND",
    "FUNCTION_NOT_FOUND",
    "CORRUPTED_INFOROM",
    "GPU_IS_LOST",
    "RESET_REQUIRED",
    "OPERATING_SYSTEM",
    "LIB_RM_VERSION_MISMATCH",
    "IN_USE",
    "MEMORY",
    "NO_DATA",
    "INSUFFICIENT_RESOURCES",
    "ARGUMENT_VERSION_MISMATCH",
    "DEPRECATED",
    "NOT_READY",
    "GPU_NOT_FOUND",
    "UNKNOWN",
]

# What a card that fails at this call cannot tell any more.
REQUIRED = {
    "nvmlDeviceGetHandleByIndex": "handle",
    "nvmlDeviceGetUUID": "handle",
    "nvmlDeviceGetMemoryInfo": "memory",
    "nvmlDeviceGetComputeRunningProcesses": "compute_processes",
    "nvmlDeviceGetTemperature": "temperature",
    "nvmlDeviceGetPowerUsage": "power",
    "nvmlDeviceGetTotalEnergyConsumption": "energy",
}
# What has a stand-in, is kept from before, or is missed by nobody where the driver says that it has none.
OPTIONAL = {
    "nvmlDeviceGetName": "name",
    "nvmlDeviceGetPciInfo": "pci_bus_id",
    "nvmlDeviceGetMigMode": "mig_mode",
    "nvmlDeviceGetSamples": "util_samples",
    "nvmlDeviceGetProcessUtilization": "process_use",
    "nvmlDeviceGetMPSComputeRunningProcesses": "mps_processes",
    "nvmlDeviceGetGraphicsRunningProcesses": "graphics_processes",
}
SICK = 2


class Host:
    """Four cards that work: each tick adds a sample of every card and process, as a driver does."""

    def __init__(self, scene: Path) -> None:
        self._scene = scene
        self._now_us = 10_000_000

    def save(self, changed: Optional[Card] = None, **of_scene: object) -> None:
        self._now_us += 1_000_000
        cards = [self.card(index) for index in range(4)]
        if changed is not None:
            cards[SICK] = replace(cards[SICK], **_differences(changed))
        Scene(cards=tuple(cards), **of_scene).save(self._scene)  # type: ignore[arg-type]

    def card(self, index: int) -> Card:
        pid = 100 + index
        return Card(
            f"GPU-{index}",
            util=index,
            memory_used=GIB,
            processes=(Process(pid, GIB),),
            samples=Samples(((self._now_us - 1, 40), (self._now_us, 60))),
            process_uses=(Use(pid, self._now_us, 30 + index),),
        )


def _differences(card: Card) -> dict[str, object]:
    plain = Card(card.uuid)
    return {name: value for name, value in vars(card).items() if value != getattr(plain, name)}


@pytest.fixture(scope="module")
def sampled(nvml_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, WorkerClient]]:
    scene = tmp_path_factory.mktemp("matrix") / "scene"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(nvml_library.parent))
        patch.setenv("GUA_NVML_SCENE", str(scene))
        host, client = Host(scene), WorkerClient(clock=SystemClock(), deadline_s=60.0)
        for _ in range(2):  # the first sample only says from where to count
            host.save()
            client.sample()
        yield host, client
        client.close()


def _is_whole(card: CardReading, index: int) -> bool:
    return (
        (card.uuid, card.index, card.absent, dict(card.faults)) == (f"GPU-{index}", index, None, {})
        and (card.util_pct, card.util_max_pct, card.util_source) == (50, 60, UtilSource.SAMPLES)
        and card.name is not None
        and card.pci_bus_id is not None
        and (card.memory_used_mb, card.temperature_c, card.power_w) == (1024, 35, 70.0)
        and [(p.pid, p.memory_mb, p.sm_util_pct) for p in card.processes or ()] == [(100 + index, 1024, 30.0 + index)]
    )


def _assert_others_whole(snapshot: Snapshot, case: str) -> None:
    assert snapshot.fault is None, case
    assert not snapshot.unresponsive, case
    others = [card for card in snapshot.cards if card.uuid != f"GPU-{SICK}"]
    assert [_is_whole(card, index) for card, index in zip(others, (0, 1, 3))] == [True] * 3, (case, others)


def _sick(snapshot: Snapshot) -> Union[CardReading, Fault]:
    """What is said of the sick card: its reading, or the fault of its slot."""
    for card in snapshot.cards:
        if card.uuid == f"GPU-{SICK}":
            return card
    (slot,) = snapshot.lost
    assert slot.index == SICK
    return slot.fault


def _assert_recovered(host: Host, client: WorkerClient, case: str) -> None:
    """Whole at the second sample: the first may have to say from where to count again."""
    for _ in range(3):
        host.save()
        snapshot = client.sample()
        if [_is_whole(card, index) for index, card in enumerate(snapshot.cards)] == [True] * 4:
            return
    raise AssertionError((case, snapshot))


def _errors_of(sick: Union[CardReading, Fault]) -> dict[str, str]:
    if isinstance(sick, Fault):
        return {"handle": sick.error}
    return {key: fault.error for key, fault in sick.faults.items()}


@pytest.mark.parametrize("call", REQUIRED)
def test_every_error_of_a_call_on_one_card_is_its_own_and_no_others(
    sampled: tuple[Host, WorkerClient], call: str
) -> None:
    host, client = sampled
    for error in ERRORS:
        host.save(Card("GPU-2", rules=(Error(call, error),)))
        snapshot = client.sample()
        _assert_others_whole(snapshot, error)
        assert _errors_of(_sick(snapshot))[REQUIRED[call]] == error
        assert reconcile(snapshot, ()).status is (
            TickStatus.OK if _is_quiet(_sick(snapshot)) else TickStatus.PARTIAL
        ), error
    _assert_recovered(host, client, call)


def _is_quiet(sick: Union[CardReading, Fault]) -> bool:
    return isinstance(sick, CardReading) and all(fault.kind.value == "unsupported" for fault in sick.faults.values())


@pytest.mark.parametrize("call", OPTIONAL)
def test_every_error_of_a_call_with_a_stand_in_leaves_the_card_its_row(
    sampled: tuple[Host, WorkerClient], call: str
) -> None:
    host, client = sampled
    for error in ERRORS:
        host.save(Card("GPU-2", rules=(Error(call, error),)))
        snapshot = client.sample()
        _assert_others_whole(snapshot, error)
        sick = _sick(snapshot)
        assert isinstance(sick, CardReading), error
        assert (sick.absent, sick.name, sick.memory_used_mb) == (None, "NVIDIA H100 80GB HBM3", 1024), error
        assert sick.util_pct in (2, 50), error  # the point reading, or the mean
        assert set(_errors_of(sick)) <= {OPTIONAL[call]}, error
    _assert_recovered(host, client, call)


def test_every_error_of_both_utilisation_calls_is_told(sampled: tuple[Host, WorkerClient]) -> None:
    host, client = sampled
    both = ("nvmlDeviceGetSamples", "nvmlDeviceGetUtilizationRates")
    for error in ERRORS:
        host.save(Card("GPU-2", rules=tuple(Error(call, error) for call in both)))
        snapshot = client.sample()
        _assert_others_whole(snapshot, error)
        sick = _sick(snapshot)
        assert isinstance(sick, CardReading)
        assert (sick.util_pct, sick.util_source, sick.faults["util"].error) == (None, None, error)
        assert (sick.absent is Reason.CARD_LOST) == (error == "GPU_IS_LOST")
    _assert_recovered(host, client, "util")


def test_every_error_of_all_calls_on_a_card_leaves_the_others(sampled: tuple[Host, WorkerClient]) -> None:
    host, client = sampled
    for error in ERRORS:
        host.save(Card("GPU-2", rules=(Error("*", error),)))
        snapshot = client.sample()
        _assert_others_whole(snapshot, error)
        assert _errors_of(_sick(snapshot)) == {"handle": error}
    _assert_recovered(host, client, "*")


RUBBISH = {
    "util": Card("GPU-2", util=4_294_967_295, samples=Samples(((2**64 - 1, 3e9),))),
    "temperature": Card("GPU-2", temperature=4_294_967_295),
    "power": Card("GPU-2", power_mw=4_294_967_295),
    "energy": Card("GPU-2", energy_mj=2**64 - 1),
    "memory": Card("GPU-2", memory_total=GIB, memory_used=2 * GIB),
    "compute_processes": Card("GPU-2", processes=(Process(4_294_967_295),)),
    "mps_processes": Card("GPU-2", processes=(Process(0, kind="mps"),)),
    "graphics_processes": Card("GPU-2", processes=(Process(2**31, kind="graphics"),)),
}


@pytest.mark.parametrize("key", RUBBISH)
def test_rubbish_of_one_card_is_a_fault_there_and_nowhere_else(sampled: tuple[Host, WorkerClient], key: str) -> None:
    host, client = sampled
    host.save(RUBBISH[key])
    snapshot = client.sample()
    _assert_others_whole(snapshot, key)
    assert _errors_of(_sick(snapshot))[key] in ("IMPOSSIBLE_VALUE", "IMPOSSIBLE_PID")
    _assert_recovered(host, client, key)


ONCE = ("nvmlDeviceGetCount",)


@pytest.mark.parametrize("call", ONCE)
def test_every_error_of_a_call_without_a_card_is_the_drivers(sampled: tuple[Host, WorkerClient], call: str) -> None:
    host, client = sampled
    for error in ("UNKNOWN", "UNINITIALIZED"):
        host.save(rules=(Error(call, error),))
        snapshot = client.sample()
        assert snapshot.fault is not None
        assert (snapshot.fault.error, snapshot.cards) == (error, ())
        _assert_recovered(host, client, call)


HANGS = [
    ("nvmlDeviceGetHandleByIndex", False),
    ("nvmlDeviceGetUtilizationRates", False),
    ("nvmlDeviceGetComputeRunningProcesses", True),
]


@pytest.mark.parametrize(("call", "masked"), HANGS)
def test_call_that_hangs_on_one_card_costs_the_others_no_sample(nvml_scene: Path, call: str, masked: bool) -> None:
    rules = (Delay(call, 600_000, masked=masked), Error("nvmlDeviceGetSamples", "NOT_SUPPORTED"))
    cards = [Card(f"GPU-{index}", util=index) for index in range(4)]
    Scene(cards=tuple(cards)).save(nvml_scene)
    client = WorkerClient(clock=SystemClock(), deadline_s=6.0)
    try:
        known = _known(_until_cards(client, 4))
        cards[SICK] = replace(cards[SICK], rules=rules)
        Scene(cards=tuple(cards)).save(nvml_scene)
        snapshot = client.sample()
        assert [(card.uuid, card.util_pct) for card in snapshot.cards] == [("GPU-0", 0), ("GPU-1", 1), ("GPU-3", 3)]
        absent = [card for card in reconcile(snapshot, known).cards if card.absent]
        assert [(card.uuid, card.absent) for card in absent] == [("GPU-2", Reason.UNRESPONSIVE)]
        assert absent[0].faults["handle"].error == "NO_ANSWER"
        assert absent[0].faults["handle"].call.startswith(call)
    finally:
        client.close()


def _until_cards(client: WorkerClient, count: int) -> Snapshot:
    """The first snapshot with so many cards: a busy machine may need several deadlines to start a child."""
    clock = SystemClock()
    ends_s = clock.monotonic_s() + 90
    while clock.monotonic_s() < ends_s:
        snapshot = client.sample()
        if len(snapshot.cards) == count:
            return snapshot
    raise AssertionError(f"never {count} cards: {snapshot}")


def _known(snapshot: Snapshot) -> list[KnownDevice]:
    return [
        KnownDevice(card.uuid, card.index, card.pci_bus_id, card.name, card.memory_total_mb, card.mig, 0, 0)
        for card in snapshot.cards
    ]


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
