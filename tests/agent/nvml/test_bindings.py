"""Versions of nvidia-ml-py that lack functions, or that stumble over a driver's answer themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from gua.clock import SystemClock
from gua.model import CardReading, FaultKind, Snapshot, UtilSource
from gua.nvml.client import WorkerClient
from tests.nvml_stub import GIB, Card, Process, Samples, Scene, Use

# The installed bindings, changed by what follows.
SHIM = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("pynvml", {path!r})
module = sys.modules["pynvml"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
def stumble(*args):
    raise TypeError("unpack of None")
"""
CARD = Card(
    "GPU-a",
    util=7,
    processes=(Process(5, GIB),),
    samples=Samples(((1, 1),)),
    process_uses=(Use(5, 1, 1),),
)


def _sample_with(
    change: str, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cards: tuple[Card, ...] = (CARD,)
) -> Generator[Snapshot, None, None]:
    installed = pytest.importorskip("pynvml").__file__
    (tmp_path / "shim").mkdir()
    (tmp_path / "shim" / "pynvml.py").write_text(SHIM.format(path=installed) + change)
    monkeypatch.syspath_prepend(str(tmp_path / "shim"))
    Scene(cards=cards).save(scene)
    client = WorkerClient(clock=SystemClock(), deadline_s=60.0)
    try:
        while True:
            yield client.sample()
    finally:
        client.close()


def _read_with(
    change: str, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int = 1
) -> list[CardReading]:
    with contextlib.closing(_sample_with(change, scene, tmp_path, monkeypatch)) as samples:
        return [next(samples).cards[0] for _ in range(times)]


def test_bindings_older_than_samples_are_read_by_what_they_have_and_it_is_said_once(
    nvml_scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    lacking = "del module.nvmlDeviceGetSamples, module.nvmlDeviceGetProcessUtilization\n"
    for reading in _read_with(lacking, nvml_scene, tmp_path, monkeypatch, times=3):
        assert (reading.util_pct, reading.util_source, reading.faults) == (7, UtilSource.POINT, {})
        assert reading.processes is not None
        assert [process.sm_util_pct for process in reading.processes] == [None]
    assert caplog.text.count("nvmlDeviceGetSamples") == 1


def test_bindings_without_a_memory_function_leave_memory_unknown(
    nvml_scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (reading,) = _read_with("del module.nvmlDeviceGetMemoryInfo\n", nvml_scene, tmp_path, monkeypatch)
    fault = reading.faults["memory"]
    assert (reading.memory_used_mb, fault.error, fault.kind) == (None, "FUNCTION_NOT_FOUND", FaultKind.UNSUPPORTED)
    assert reading.util_pct == 7


def test_error_of_the_bindings_own_costs_its_reading_only(
    nvml_scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stumbling = "module.nvmlDeviceGetComputeRunningProcesses = module.nvmlDeviceGetTemperature = stumble\n"
    (reading,) = _read_with(stumbling, nvml_scene, tmp_path, monkeypatch)
    assert {key: (fault.error, fault.kind) for key, fault in reading.faults.items()} == {
        "compute_processes": ("TypeError", FaultKind.FAILED),
        "temperature": ("TypeError", FaultKind.FAILED),
    }
    assert (reading.util_pct, reading.memory_used_mb, reading.power_w) == (7, 0, 70.0)


# Answers of the bindings in which our own code stumbles, of the second card only.
ODD = """
def odd_second(name, answer):
    plain = getattr(module, name)
    def changed(handle, *args):
        is_second = module.nvmlDeviceGetUUID(handle) == "GPU-b"
        return answer if is_second else plain(handle, *args)
    setattr(module, name, changed)
odd_second({name!r}, {answer})
"""


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("nvmlDeviceGetMigMode", "()"),
        ("nvmlDeviceGetSamples", "None"),
        ("nvmlDeviceGetMemoryInfo", "None"),
        ("nvmlDeviceGetComputeRunningProcesses", "[None]"),
        ("nvmlDeviceGetPowerUsage", "None"),
        ("nvmlDeviceGetPciInfo", "None"),
    ],
)
def test_an_answer_of_a_shape_nobody_knows_costs_its_card_only(
    nvml_scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, answer: str
) -> None:
    change, cards = ODD.format(name=name, answer=answer), (CARD, replace(CARD, uuid="GPU-b"), Card("GPU-c", util=3))
    with contextlib.closing(_sample_with(change, nvml_scene, tmp_path, monkeypatch, cards)) as samples:
        snapshot = next(samples)
    assert snapshot.fault is None
    assert [(card.uuid, card.util_pct) for card in snapshot.cards] == [("GPU-a", 7), ("GPU-c", 3)]
    assert [(slot.index, slot.uuid) for slot in snapshot.lost] == [(1, "GPU-b")]


def test_an_impossible_number_of_cards_is_the_drivers_fault_and_is_not_counted_to(
    nvml_scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = "module.nvmlDeviceGetCount = lambda: 2**32 - 1\n"
    with contextlib.closing(_sample_with(change, nvml_scene, tmp_path, monkeypatch)) as samples:
        snapshot = next(samples)
    assert snapshot.fault is not None
    assert (snapshot.unresponsive, snapshot.fault.call) == (False, "nvmlDeviceGetCount")
    assert snapshot.fault.error == "IMPOSSIBLE_VALUE"
