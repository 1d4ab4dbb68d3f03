"""Snapshots of whole hosts, through the real bindings and the stub library."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Optional

import pytest

from gua.model import CardReading, FaultKind, MemorySource, Mig, ProcessType, Reason, Snapshot, UtilSource
from gua.nvml.client import WorkerClient
from tests.nvml_stub import GIB, MIB, Card, Error, Instance, Process, Scene

ReadScene = Callable[[Scene], Snapshot]
ReadCard = Callable[[Card], CardReading]

UTIL = "nvmlDeviceGetUtilizationRates"
MEMORY = "nvmlDeviceGetMemoryInfo"
HANDLE = "nvmlDeviceGetHandleByIndex"


def test_healthy_card_gives_every_reading_in_its_unit(read_card: ReadCard) -> None:
    reading = read_card(
        Card("GPU-a", util=93, memory_used=12 * GIB, temperature=61, power_mw=412_345, energy_mj=987_654_321)
    )
    assert reading == CardReading(
        uuid="GPU-a",
        index=0,
        pci_bus_id="00000000:01:00.0",
        name="NVIDIA H100 80GB HBM3",
        memory_total_mb=80 * 1024,
        memory_used_mb=12 * 1024,
        memory_source=MemorySource.V2,
        util_pct=93,
        util_source=UtilSource.POINT,
        processes=(),
        temperature_c=61,
        power_w=412.345,
        energy_mj=987_654_321,
    )


def test_idle_card_reads_zero_and_not_none(read_card: ReadCard) -> None:
    reading = read_card(Card("GPU-a", util=0, memory_used=0, temperature=0, power_mw=0, energy_mj=0))
    assert (reading.util_pct, reading.memory_used_mb, reading.temperature_c) == (0, 0, 0)
    assert (reading.power_w, reading.energy_mj, reading.faults) == (0.0, 0, {})


def test_host_without_a_card_gives_an_empty_snapshot_without_fault(read_scene: ReadScene) -> None:
    snapshot = read_scene(Scene())
    assert (snapshot.cards, snapshot.lost, snapshot.fault) == ((), (), None)


def test_missing_scene_file_means_no_card(client: WorkerClient) -> None:
    assert client.sample().cards == ()


def test_versions_are_text(read_scene: ReadScene) -> None:
    snapshot = read_scene(Scene(driver="535.288.01", nvml="12.535.288.01"))
    assert (snapshot.driver_version, snapshot.nvml_version) == ("535.288.01", "12.535.288.01")


def test_awkward_fleet_keeps_every_healthy_reading(read_scene: ReadScene) -> None:
    no_power = Card("GPU-nopower", util=50, power_mw=None)
    lost = Card("GPU-lost", rules=(Error(HANDLE, "GPU_IS_LOST"),))
    snapshot = read_scene(Scene(cards=(no_power, Card("GPU-idle"), lost, Card("GPU-last", util=7))))
    assert [(card.uuid, card.index, card.util_pct) for card in snapshot.cards] == [
        ("GPU-nopower", 0, 50),
        ("GPU-idle", 1, 0),
        ("GPU-last", 3, 7),
    ]
    assert [(slot.index, slot.fault.error) for slot in snapshot.lost] == [(2, "GPU_IS_LOST")]
    assert snapshot.cards[0].power_w is None
    assert snapshot.cards[0].faults["power"].kind is FaultKind.UNSUPPORTED


def test_card_that_vanishes_shifts_no_history_to_its_neighbour(read_scene: ReadScene) -> None:
    before = read_scene(Scene(cards=(Card("GPU-a"), Card("GPU-b", name="NVIDIA L4"), Card("GPU-c"))))
    after = read_scene(Scene(cards=(Card("GPU-a"), Card("GPU-c", pci="00000000:03:00.0"))))
    assert [card.uuid for card in before.cards] == ["GPU-a", "GPU-b", "GPU-c"]
    assert [(card.uuid, card.name, card.pci_bus_id) for card in after.cards] == [
        ("GPU-a", "NVIDIA H100 80GB HBM3", "00000000:01:00.0"),
        ("GPU-c", "NVIDIA H100 80GB HBM3", "00000000:03:00.0"),
    ]


def test_of_cards_that_tell_one_uuid_none_is_believed(read_scene: ReadScene) -> None:
    """Else the readings of the one would be booked as the other's."""
    snapshot = read_scene(Scene(cards=(Card("GPU-a"), Card("GPU-b", util=7), Card("GPU-a", util=93))))
    assert [(card.uuid, card.util_pct) for card in snapshot.cards] == [("GPU-b", 7)]
    assert [(slot.index, slot.uuid, slot.fault.error) for slot in snapshot.lost] == [
        (0, None, "NOT_UNIQUE"),
        (2, None, "NOT_UNIQUE"),
    ]


@pytest.mark.parametrize("error", ["GPU_IS_LOST", "UNKNOWN", "NO_PERMISSION"])
def test_card_without_a_handle_is_a_lost_slot(read_scene: ReadScene, error: str) -> None:
    snapshot = read_scene(Scene(cards=(Card("GPU-a"), Card("GPU-b", rules=(Error(HANDLE, error),)))))
    assert [card.uuid for card in snapshot.cards] == ["GPU-a"]
    assert [(slot.index, slot.fault.error) for slot in snapshot.lost] == [(1, error)]


def test_card_without_a_uuid_is_a_lost_slot(read_scene: ReadScene) -> None:
    snapshot = read_scene(Scene(cards=(Card("GPU-a"), Card("GPU-b", rules=(Error("nvmlDeviceGetUUID", "UNKNOWN"),)))))
    assert [(slot.index, slot.fault.call) for slot in snapshot.lost] == [(1, "nvmlDeviceGetUUID")]


@pytest.mark.parametrize(("call", "key"), [(UTIL, "util"), (MEMORY, "memory")])
def test_card_lost_between_calls_is_absent_with_its_uuid(read_scene: ReadScene, call: str, key: str) -> None:
    dying = Card("GPU-b", util=44, rules=(Error(call, "GPU_IS_LOST"),))
    healthy, lost = read_scene(Scene(cards=(Card("GPU-a"), dying))).cards
    assert (healthy.uuid, healthy.absent) == ("GPU-a", None)
    assert (lost.uuid, lost.index, lost.absent) == ("GPU-b", 1, Reason.CARD_LOST)
    assert lost.faults[key].error == "GPU_IS_LOST"
    assert (lost.util_pct, lost.memory_used_mb, lost.processes, lost.power_w) == (None, None, None, None)


READINGS = [
    ("nvmlDeviceGetName", "name", "name"),
    ("nvmlDeviceGetPciInfo", "pci_bus_id", "pci_bus_id"),
    (UTIL, "util", "util_pct"),
    (MEMORY, "memory", "memory_used_mb"),
    ("nvmlDeviceGetComputeRunningProcesses", "compute_processes", "processes"),
    ("nvmlDeviceGetTemperature", "temperature", "temperature_c"),
    ("nvmlDeviceGetPowerUsage", "power", "power_w"),
    ("nvmlDeviceGetTotalEnergyConsumption", "energy", "energy_mj"),
]


@pytest.mark.parametrize(("error", "kind"), [("UNKNOWN", FaultKind.FAILED), ("NOT_SUPPORTED", FaultKind.UNSUPPORTED)])
@pytest.mark.parametrize(("call", "key", "field"), READINGS, ids=[key for _, key, _ in READINGS])
def test_failing_call_costs_its_own_reading_only(
    read_card: ReadCard, call: str, key: str, field: str, error: str, kind: FaultKind
) -> None:
    reading = read_card(Card("GPU-a", rules=(Error(call, error),)))
    assert {name: (fault.error, fault.kind) for name, fault in reading.faults.items()} == {key: (error, kind)}
    assert getattr(reading, field) is None
    missing = [other for _, _, other in READINGS if getattr(reading, other) is None]
    assert missing == [field]


def test_reading_that_failed_once_comes_back_with_the_next_sample(nvml_scene: Path, client: WorkerClient) -> None:
    Scene(cards=(Card("GPU-a", util=80, rules=(Error(UTIL, "UNKNOWN", first=1),)),)).save(nvml_scene)
    assert [client.sample().cards[0].util_pct for _ in range(3)] == [None, 80, 80]


def test_failed_name_is_asked_again_until_it_is_known(nvml_scene: Path, client: WorkerClient) -> None:
    Scene(cards=(Card("GPU-a", rules=(Error("nvmlDeviceGetName", "UNKNOWN", first=1),)),)).save(nvml_scene)
    assert [client.sample().cards[0].name for _ in range(3)] == [None, *["NVIDIA H100 80GB HBM3"] * 2]


@pytest.mark.parametrize(
    ("card", "key"),
    [
        (Card("GPU-a", util=4_294_967_295), "util"),
        (Card("GPU-a", util=101), "util"),
        (Card("GPU-a", temperature=4_294_967_295), "temperature"),
        (Card("GPU-a", power_mw=4_294_967_295), "power"),
        (Card("GPU-a", energy_mj=2**64 - 1), "energy"),
        (Card("GPU-a", memory_total=2**64 - 1), "memory"),
        (Card("GPU-a", memory_used=81 * GIB), "memory"),
    ],
)
def test_number_no_card_can_have_is_a_failed_reading(read_card: ReadCard, card: Card, key: str) -> None:
    reading = read_card(card)
    assert {name: fault.error for name, fault in reading.faults.items()} == {key: "IMPOSSIBLE_VALUE"}


@pytest.mark.parametrize(
    "error", ["DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH", "LIBRARY_NOT_FOUND", "UNKNOWN", "NO_PERMISSION"]
)
def test_failing_init_is_the_fault_of_the_snapshot(read_scene: ReadScene, error: str) -> None:
    snapshot = read_scene(Scene(cards=(Card("GPU-a"),), rules=(Error("nvmlInit", error),)))
    assert snapshot.cards == ()
    assert snapshot.fault is not None
    assert (snapshot.fault.call, snapshot.fault.error) == ("nvmlInit", error)


def test_missing_library_is_the_fault_of_the_snapshot(
    client: WorkerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    fault = client.sample().fault
    assert fault is not None
    assert (fault.error, fault.kind) == ("LIBRARY_NOT_FOUND", FaultKind.FAILED)


def test_failing_count_is_the_fault_of_the_snapshot(read_scene: ReadScene) -> None:
    snapshot = read_scene(Scene(cards=(Card("GPU-a"),), rules=(Error("nvmlDeviceGetCount", "UNKNOWN"),)))
    assert snapshot.fault is not None
    assert (snapshot.fault.error, snapshot.driver_version) == ("UNKNOWN", "570.86.15")


@pytest.mark.parametrize("error", ["UNINITIALIZED", "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH"])
@pytest.mark.parametrize(
    "call", [HANDLE, UTIL, MEMORY, "nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMigMode"]
)
def test_driver_level_error_on_every_card_is_the_fault_of_the_snapshot(
    read_scene: ReadScene, call: str, error: str
) -> None:
    snapshot = read_scene(Scene(cards=(Card("GPU-a"), Card("GPU-b")), rules=(Error(call, error),)))
    assert (snapshot.cards, snapshot.lost) == ((), ())
    assert snapshot.fault is not None
    assert snapshot.fault.error == error


def _mig_card(*instances: Instance, rules: tuple[Error, ...] = ()) -> Card:
    return Card("GPU-parent", util=None, mig_max=7, instances=instances, rules=rules)


def test_mig_instances_are_cards_and_their_parent_is_left_out(read_scene: ReadScene) -> None:
    first = Instance("MIG-1", slot=0, memory_used=2 * GIB, processes=(Process(10, 2 * GIB, gpu_instance=7),))
    second = Instance("MIG-2", slot=3, name="NVIDIA H100 80GB HBM3 MIG 3g.40gb", memory_total=40 * GIB)
    snapshot = read_scene(Scene(cards=(Card("GPU-plain"), _mig_card(first, second), Card("GPU-last"))))
    assert [(card.uuid, card.index, card.mig) for card in snapshot.cards] == [
        ("GPU-plain", 0, None),
        ("MIG-1", 1, Mig("GPU-parent", "1g.10gb")),
        ("MIG-2", 1, Mig("GPU-parent", "3g.40gb")),
        ("GPU-last", 2, None),
    ]
    one = snapshot.cards[1]
    assert (one.memory_total_mb, one.memory_used_mb, one.pci_bus_id) == (10 * 1024, 2 * 1024, "00000000:02:00.0")
    assert one.processes is not None
    assert [(process.pid, process.type) for process in one.processes] == [(10, ProcessType.COMPUTE)]


def test_mig_instance_has_no_figures_that_only_the_card_has(read_scene: ReadScene) -> None:
    (one,) = read_scene(Scene(cards=(_mig_card(Instance("MIG-1")),))).cards
    assert (one.util_pct, one.power_w, one.energy_mj, one.temperature_c) == (None, None, None, None)
    assert set(one.faults) == {"util", "power", "energy", "temperature"}
    assert {fault.kind for fault in one.faults.values()} == {FaultKind.UNSUPPORTED}


def test_card_with_mig_on_and_no_instance_gives_no_card(read_scene: ReadScene) -> None:
    snapshot = read_scene(Scene(cards=(_mig_card(), Card("GPU-b"))))
    assert [card.uuid for card in snapshot.cards] == ["GPU-b"]
    assert snapshot.mig_parents == ("GPU-parent",)


@pytest.mark.parametrize(
    ("slices", "total", "profile"),
    [((1, 1), 10 * GIB - 200 * MIB, "1g.10gb"), ((3, 1), 40 * GIB, "1c.3g.40gb"), (None, 10 * GIB, "unknown")],
)
def test_mig_profile_is_made_of_the_slices_when_the_name_does_not_tell(
    read_scene: ReadScene, slices: Optional[tuple[int, int]], total: int, profile: str
) -> None:
    instance = Instance("MIG-1", name="NVIDIA H100", slices=slices, memory_total=total)
    assert read_scene(Scene(cards=(_mig_card(instance),))).cards[0].mig == Mig("GPU-parent", profile)


def test_one_unreadable_mig_instance_costs_that_instance(read_scene: ReadScene) -> None:
    bad = Instance("MIG-bad", slot=0, rules=(Error("nvmlDeviceGetUUID", "UNKNOWN"),))
    snapshot = read_scene(Scene(cards=(_mig_card(bad, Instance("MIG-good", slot=1)),)))
    assert [card.uuid for card in snapshot.cards] == ["MIG-good"]
    assert [(slot.index, slot.fault.error) for slot in snapshot.lost] == [(0, "UNKNOWN")]


def test_lost_parent_of_mig_instances_is_one_lost_slot(read_scene: ReadScene) -> None:
    rules = (Error("nvmlDeviceGetMigDeviceHandleByIndex", "GPU_IS_LOST"),)
    snapshot = read_scene(Scene(cards=(_mig_card(Instance("MIG-1"), rules=rules), Card("GPU-b"))))
    assert [slot.index for slot in snapshot.lost] == [0]
    assert [card.uuid for card in snapshot.cards] == ["GPU-b"]
