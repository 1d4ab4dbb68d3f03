"""The stub answers as the real library does, seen through nvidia-ml-py in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.nvml_stub import GIB, Card, Error, Instance, Process, Scene, StubUnavailable, build, library

PREAMBLE = """
import ctypes, json, os, sys
import pynvml as n

def error(function, *args):
    try:
        return function(*args)
    except n.NVMLError as exc:
        return type(exc).__name__

def save(text):
    with open(os.environ["GUA_NVML_SCENE"] + ".new", "w") as file:
        file.write(text)
    os.replace(file.name, os.environ["GUA_NVML_SCENE"])

def say(value):
    print(json.dumps(value))

n.nvmlInit()
"""


def _run(code: str) -> object:
    done = subprocess.run([sys.executable, "-c", PREAMBLE + code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_memory_structure_of_another_version_is_refused(nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    code = """
card = n.nvmlDeviceGetHandleByIndex(0)
say([error(n.nvmlDeviceGetMemoryInfo, card, 0x01000028), n.nvmlDeviceGetMemoryInfo(card, n.nvmlMemory_v2).total])
"""
    refused, total = _run(code)  # type: ignore[misc]
    assert refused in {"NVMLError_ArgumentVersionMismatch", "NVMLError"}
    assert total == 80 * GIB


def test_process_list_tells_how_much_room_it_needs(nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a", processes=tuple(Process(pid) for pid in range(1, 6))),)).save(nvml_scene)
    code = """
card = n.nvmlDeviceGetHandleByIndex(0)
ask = n._nvmlGetFunctionPointer("nvmlDeviceGetComputeRunningProcesses_v3")
answers = []
for room, memory in ((0, None), (4, (n.c_nvmlProcessInfo_t * 4)()), (5, (n.c_nvmlProcessInfo_t * 5)())):
    count = ctypes.c_uint(room)
    answers.append([ask(card, ctypes.byref(count), memory), count.value])
say(answers)
"""
    insufficient_size, success = 7, 0
    assert _run(code) == [[insufficient_size, 5], [insufficient_size, 5], [success, 5]]


def test_reloaded_driver_needs_shutdown_and_init(nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    reloaded = "\n".join(Scene(cards=(Card("GPU-a"), Card("GPU-b")), generation=2).lines())
    code = f"""
card = n.nvmlDeviceGetHandleByIndex(0)
save({reloaded!r} + "\\n")
answers = [error(n.nvmlDeviceGetCount), error(n.nvmlDeviceGetUUID, card)]
n.nvmlInit()
answers.append(error(n.nvmlDeviceGetCount))
n.nvmlShutdown(); n.nvmlShutdown(); n.nvmlInit()
say([*answers, n.nvmlDeviceGetCount()])
"""
    assert _run(code) == [*["NVMLError_Uninitialized"] * 3, 2]


def test_rules_count_calls(nvml_scene: Path) -> None:
    rules = (Error("nvmlDeviceGetName", "UNKNOWN", first=2), Error("nvmlDeviceGetUUID", "GPU_IS_LOST", since=2))
    Scene(cards=(Card("GPU-a", name="A", rules=rules),)).save(nvml_scene)
    code = """
card = n.nvmlDeviceGetHandleByIndex(0)
say([[error(n.nvmlDeviceGetName, card) for _ in range(3)], [error(n.nvmlDeviceGetUUID, card) for _ in range(3)]])
"""
    assert _run(code) == [
        ["NVMLError_Unknown", "NVMLError_Unknown", "A"],
        ["GPU-a", "NVMLError_GpuIsLost", "NVMLError_GpuIsLost"],
    ]


def test_mig_instances_know_their_card_and_ids(nvml_scene: Path) -> None:
    instance = Instance(
        "MIG-x", slot=2, gpu_instance=9, compute_instance=1, processes=(Process(5, GIB, "compute", 9, 1),)
    )
    Scene(cards=(Card("GPU-a", mig_max=7, instances=(instance,)),)).save(nvml_scene)
    code = """
card = n.nvmlDeviceGetHandleByIndex(0)
mig = n.nvmlDeviceGetMigDeviceHandleByIndex(card, 2)
parent = n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)
process = n.nvmlDeviceGetComputeRunningProcesses(card)[0]
say([
    n.nvmlDeviceGetMigMode(card)[0], n.nvmlDeviceGetMaxMigDeviceCount(card),
    error(n.nvmlDeviceGetMigDeviceHandleByIndex, card, 0), error(n.nvmlDeviceGetMigDeviceHandleByIndex, card, 7),
    n.nvmlDeviceGetUUID(parent), n.nvmlDeviceGetGpuInstanceId(mig), n.nvmlDeviceGetComputeInstanceId(mig),
    n.nvmlDeviceGetAttributes(mig).memorySizeMB, process.gpuInstanceId, process.computeInstanceId,
])
"""
    assert _run(code) == [1, 7, "NVMLError_NotFound", "NVMLError_InvalidArgument", "GPU-a", 9, 1, 10 * 1024, 9, 1]


def test_cards_are_found_by_uuid_and_pci_address(nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"), Card("GPU-b"))).save(nvml_scene)
    code = """
cards = n.nvmlDeviceGetHandleByUUID("GPU-b"), n.nvmlDeviceGetHandleByPciBusId("00000000:02:00.0")
say([n.nvmlDeviceGetIndex(card) for card in cards] + [n.nvmlDeviceGetTemperature(cards[0], 0)])
"""
    assert _run(code) == [1, 1, 35]


@pytest.mark.parametrize("line", ["card", "error nvmlInit NO_SUCH_ERROR", "utill 5", "generation soon"])
def test_scene_with_a_mistake_is_told_and_never_taken_for_a_host(nvml_scene: Path, line: str) -> None:
    nvml_scene.write_text(f"{line}\nutil many\n")
    done = subprocess.run([sys.executable, "-c", PREAMBLE], capture_output=True, text=True, timeout=60)
    assert "NVMLError_Unknown" in done.stderr
    assert "nvml stub: scene: " in done.stderr


def test_builds_at_the_same_time_give_one_library(nvml_library: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        paths = set(pool.map(build, [tmp_path] * 3))
    (path,) = paths
    assert path.name == "libnvidia-ml.so.1"
    assert [file.name for file in tmp_path.iterdir()] == [path.parent.name]


def test_missing_compiler_is_a_reason_to_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library.shutil, "which", lambda _: None)
    with pytest.raises(StubUnavailable, match="gcc"):
        library.find_header()
