"""Every call that sampling makes, with every error of NVML, rubbish and silence on one of four cards.

Real child, real bindings, the C stub. One child serves nearly all cases: the scene is replaced beneath it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Optional, Union

import pytest

from gua.clock import SystemClock
from gua.model import CardReading, Fault, Reason, Snapshot, TickStatus, UtilSource
from gua.nvml.client import WorkerClient
from gua.reconcile import reconcile
from tests.nvml_stub import ERRORS, GIB, Card, Error, Process, Samples, Scene, Use

pytestmark = pytest.mark.processes

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


def test_errors_are_all_that_the_bindings_know() -> None:
    pynvml = pytest.importorskip("pynvml")
    known = {name[len("NVML_ERROR_") :] for name in vars(pynvml) if name.startswith("NVML_ERROR_")}
    assert known <= set(ERRORS)


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
