"""Three process lists made into one, and lists that cannot be believed."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import pytest

from gua.clock import SystemClock
from gua.model import CardReading, FaultKind, GpuProcess, ProcessType, Snapshot
from gua.nvml.client import WorkerClient
from gua.nvml.processes import merge_processes, read_pid_max
from tests.nvml_stub import GIB, MIB, Card, Error, Process, Scene, build
from tests.nvml_stub.fixture import BUILD_DIR

ReadCard = Callable[[Card], CardReading]

COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
MPS = "nvmlDeviceGetMPSComputeRunningProcesses"
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses"


def test_processes_come_with_their_type_and_memory(read_card: ReadCard) -> None:
    listed = (Process(30, 3 * GIB), Process(20, 2 * GIB, "mps"), Process(10, 5 * MIB, "graphics"))
    assert read_card(Card("GPU-a", processes=listed)).processes == (
        GpuProcess(10, ProcessType.GRAPHICS, 5),
        GpuProcess(20, ProcessType.MPS, 2048),
        GpuProcess(30, ProcessType.COMPUTE, 3072),
    )


def test_process_in_several_lists_is_one_of_the_strongest_type(read_card: ReadCard) -> None:
    listed = (Process(7, GIB, "graphics"), Process(7, GIB, "mps"), Process(7, GIB), Process(8, GIB, "graphics"))
    assert read_card(Card("GPU-a", processes=listed)).processes == (
        GpuProcess(7, ProcessType.COMPUTE, 1024),
        GpuProcess(8, ProcessType.GRAPHICS, 1024),
    )


@pytest.mark.parametrize("memory", [None, 2**64 - 1, 2**63, 2**64 - 2])
def test_memory_the_driver_does_not_tell_is_none(read_card: ReadCard, memory: int) -> None:
    reading = read_card(Card("GPU-a", processes=(Process(7, memory),)))
    assert reading.processes == (GpuProcess(7, ProcessType.COMPUTE, None),)


def test_many_processes_are_all_listed(read_card: ReadCard) -> None:
    reading = read_card(Card("GPU-a", processes=tuple(Process(pid, MIB) for pid in range(1, 301))))
    assert reading.processes is not None
    assert [process.pid for process in reading.processes] == list(range(1, 301))


@pytest.mark.parametrize("kind", ["compute", "mps", "graphics"])
@pytest.mark.parametrize("pid", [0, 4_294_967_295])
def test_impossible_pid_makes_the_whole_card_unbelievable(read_card: ReadCard, pid: int, kind: str) -> None:
    reading = read_card(Card("GPU-a", processes=(Process(1184, GIB), Process(pid, GIB, kind))))
    assert reading.processes is None
    assert {fault.error for fault in reading.faults.values()} == {"IMPOSSIBLE_PID"}


def test_driver_with_longer_entries_than_the_bindings_expect_is_not_believed(
    read_scene: Callable[[Scene], Snapshot],
) -> None:
    card = Card("GPU-a", processes=tuple(Process(pid, GIB) for pid in (1184, 16040, 20)))
    reading = read_scene(Scene(cards=(card,), process_info_size=40)).cards[0]
    assert reading.processes is None
    assert reading.faults["compute_processes"].error == "IMPOSSIBLE_PID"


@pytest.mark.parametrize("error", ["NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "UNKNOWN"])
def test_without_a_compute_list_the_holders_are_unknown(read_card: ReadCard, error: str) -> None:
    reading = read_card(Card("GPU-a", processes=(Process(7, GIB, "mps"),), rules=(Error(COMPUTE, error),)))
    assert reading.processes is None
    assert reading.faults["compute_processes"].error == error


@pytest.mark.parametrize("error", ["NOT_SUPPORTED", "FUNCTION_NOT_FOUND"])
def test_without_mps_support_the_other_lists_stand(read_card: ReadCard, error: str) -> None:
    reading = read_card(Card("GPU-a", processes=(Process(7, GIB),), rules=(Error(MPS, error),)))
    assert reading.processes == (GpuProcess(7, ProcessType.COMPUTE, 1024),)
    assert reading.faults["mps_processes"].kind is FaultKind.UNSUPPORTED


def test_mps_list_that_failed_may_hide_a_holder(read_card: ReadCard) -> None:
    reading = read_card(Card("GPU-a", rules=(Error(MPS, "UNKNOWN"),)))
    assert reading.processes is None
    assert reading.faults["mps_processes"].kind is FaultKind.FAILED


def test_graphics_list_that_failed_hides_no_holder(read_card: ReadCard) -> None:
    reading = read_card(Card("GPU-a", processes=(Process(7, GIB),), rules=(Error(GRAPHICS, "UNKNOWN"),)))
    assert reading.processes == (GpuProcess(7, ProcessType.COMPUTE, 1024),)
    assert reading.faults["graphics_processes"].error == "UNKNOWN"


def _read_with_library(nvml_scene: Path, monkeypatch: pytest.MonkeyPatch, *without: str) -> CardReading:
    library = build(BUILD_DIR, without=without)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    Scene(cards=(Card("GPU-a", processes=(Process(7, GIB),)),)).save(nvml_scene)
    client = WorkerClient(clock=SystemClock())
    (reading,) = client.sample().cards
    client.close()
    return reading


def test_driver_older_than_mps_lists_is_read(nvml_scene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = _read_with_library(nvml_scene, monkeypatch, f"{MPS}_v3", f"{MPS}_v2")
    assert reading.processes == (GpuProcess(7, ProcessType.COMPUTE, 1024),)
    assert {key: fault.error for key, fault in reading.faults.items()} == {"mps_processes": "FUNCTION_NOT_FOUND"}


def test_driver_with_version_two_of_the_lists_is_read(nvml_scene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(pytest.importorskip("pynvml"), f"{COMPUTE}_v2"):
        pytest.skip("this nvidia-ml-py knows version 3 only")
    reading = _read_with_library(nvml_scene, monkeypatch, *(f"{name}_v3" for name in (COMPUTE, MPS, GRAPHICS)))
    assert reading.processes == (GpuProcess(7, ProcessType.COMPUTE, 1024),)
    assert reading.faults == {}


def test_merge_keeps_the_amount_that_is_known() -> None:
    listed = [GpuProcess(7, ProcessType.MPS, None), GpuProcess(7, ProcessType.GRAPHICS, 5)]
    assert merge_processes(listed) == (GpuProcess(7, ProcessType.MPS, 5),)


def test_pid_max_is_the_kernels_and_the_highest_of_all_where_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUA_PROCFS_ROOT", str(tmp_path))
    assert read_pid_max() == 4_194_304
    (tmp_path / "sys" / "kernel").mkdir(parents=True)
    (tmp_path / "sys" / "kernel" / "pid_max").write_text("32768\n")
    assert read_pid_max() == 32768


def test_a_pid_above_what_the_kernel_allowed_when_sampling_began_is_believed(
    read_card: ReadCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "sys" / "kernel" / "pid_max"
    limit.parent.mkdir(parents=True)
    limit.write_text("32768\n")
    monkeypatch.setenv("GUA_PROCFS_ROOT", str(tmp_path))
    card = Card("GPU-a", processes=(Process(40_000, GIB),))
    assert read_card(card).processes is None
    limit.write_text("4194304\n")  # an administrator raised kernel.pid_max
    assert read_card(card).processes == (GpuProcess(40_000, ProcessType.COMPUTE, 1024),)


def test_list_that_grows_between_the_two_calls_is_asked_again(read_card: ReadCard) -> None:
    reading = read_card(
        Card("GPU-a", processes=(Process(7, GIB),), rules=(Error(COMPUTE, "INSUFFICIENT_SIZE", first=2),))
    )
    assert (reading.processes, reading.faults) == ((GpuProcess(7, ProcessType.COMPUTE, 1024),), {})


def test_list_that_never_stops_growing_is_given_up(read_card: ReadCard) -> None:
    reading = read_card(Card("GPU-a", processes=(Process(7, GIB),), rules=(Error(COMPUTE, "INSUFFICIENT_SIZE"),)))
    assert (reading.processes, reading.faults["compute_processes"].error) == (None, "INSUFFICIENT_SIZE")
