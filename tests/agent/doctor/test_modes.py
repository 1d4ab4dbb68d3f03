import json
from pathlib import Path
from typing import Any, Optional

import pytest

from gua.doctor.modes import CardModes, Modes, check_bindings, check_mig, check_persistence_mode, parse_modes
from gua.doctor.question import ask_module
from gua.model import CardReading, Fault, FaultKind, Mig, Snapshot
from tests.nvml_stub import Card, Error, Scene

WHOLE = CardReading("GPU-a", 0)
SLICE = CardReading("MIG-1", 1, mig=Mig("GPU-b", "1g.10gb"))


def modes(*cards: CardModes, **more: Any) -> Modes:
    return Modes(cards=cards, **more)


def card(
    uuid: str, persistence: Optional[bool] = None, now: Optional[bool] = None, after: Optional[bool] = None
) -> CardModes:
    return CardModes(uuid, persistence, now, after)


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (None, "skip"),
        (modes(), "skip"),
        (modes(card("GPU-a")), "skip"),
        (modes(card("GPU-a", True), card("GPU-b")), "ok"),
        (modes(card("GPU-a", True), card("GPU-b", False)), "warn"),
    ],
)
def test_persistence_mode_is_judged_where_a_card_says_it(found: Optional[Modes], status: str) -> None:
    assert check_persistence_mode(found).status == status


def test_the_cards_without_persistence_mode_are_named_unless_it_is_all_of_them() -> None:
    some = check_persistence_mode(modes(card("GPU-a", True), card("GPU-b", False)))
    assert (some.summary.partition(":")[0], some.details["off"]) == ("off on GPU-b", ["GPU-b"])
    assert check_persistence_mode(modes(card("GPU-b", False))).summary.startswith("off on all 1 cards")


@pytest.mark.parametrize(
    ("snapshot", "found", "status", "word"),
    [
        (Snapshot(cards=(WHOLE,)), modes(card("GPU-a", now=False, after=False)), "ok", "no card"),
        (Snapshot(cards=(WHOLE,)), None, "ok", "no card"),
        (Snapshot(cards=(WHOLE, SLICE), mig_parents=("GPU-b",)), None, "ok", "1 cards cut into 1 instances"),
        (Snapshot(cards=(WHOLE,), mig_parents=("GPU-b",)), None, "warn", "without an instance"),
        (Snapshot(cards=(SLICE,), mig_parents=("GPU-b", "GPU-c")), None, "warn", "GPU-c"),
        (Snapshot(cards=(WHOLE,)), modes(card("GPU-a", now=False, after=True)), "warn", "waits for a reset of GPU-a"),
        (Snapshot(unresponsive=True), None, "skip", "cannot be asked"),
    ],
)
def test_mig_mode_is_told_with_what_is_missing(
    snapshot: Snapshot, found: Optional[Modes], status: str, word: str
) -> None:
    check = check_mig(snapshot, found)
    assert check.status == status
    assert word in check.summary


def test_an_impossible_pid_means_that_the_bindings_do_not_fit() -> None:
    fault = Fault("nvmlDeviceGetComputeRunningProcesses", "IMPOSSIBLE_PID", FaultKind.FAILED)
    bad = CardReading("GPU-b", 1, faults={"compute_processes": fault})
    check = check_bindings(Snapshot(cards=(WHOLE, bad), driver_version="535.1"), modes(bindings_version="13.1"))
    assert check.status == "fail"
    assert "13.1 misreads this driver's process lists (card 1)" in check.summary
    assert check_bindings(Snapshot(cards=(WHOLE,)), None).status == "ok"
    assert check_bindings(Snapshot(), None).status == "skip"


def test_functions_that_are_not_there_are_counted_and_no_misfit() -> None:
    check = check_bindings(Snapshot(cards=(WHOLE,), missing_calls=("nvmlDeviceGetSamples",)), None)
    assert (check.status, check.details["missing_calls"]) == ("ok", ["nvmlDeviceGetSamples"])
    assert check.summary.endswith("1 functions of it are missing")


@pytest.mark.parametrize("text", ["", "rubbish", "[]", "{}", '{"cards": 3}', '"x"', "null"])
def test_what_is_no_answer_is_none(text: str) -> None:
    assert parse_modes(text) is None


def test_noise_before_the_answer_does_not_matter() -> None:
    answer = {"control_errno": 1, "library_version": "5.1", "bindings_version": None, "cards": []}
    assert parse_modes("driver says hello\n" + json.dumps(answer) + "\n") == Modes(1, "5.1", None, ())


def ask(dev: Path) -> Modes:
    found = parse_modes(ask_module("gua.nvml.modes", str(dev)).answer(90).text)
    assert found is not None
    return found


def test_the_driver_is_asked_in_a_process_of_its_own(tmp_path: Path, nvml_scene: Path) -> None:
    silent = Card("GPU-b", rules=(Error("nvmlDeviceGetPersistenceMode", "NOT_SUPPORTED"),))
    lost = Card("GPU-c", rules=(Error("nvmlDeviceGetHandleByIndex_v2", "GPU_IS_LOST"),))
    Scene(cards=(Card("GPU-a"), silent, lost)).save(nvml_scene)
    (tmp_path / "nvidiactl").touch()
    found = ask(tmp_path / "nvidiactl")
    assert [(one.uuid, one.persistence) for one in found.cards] == [("GPU-a", True), ("GPU-b", None)]
    assert found.control_errno is None
    assert found.bindings_version is not None


def test_a_driver_that_does_not_start_leaves_the_rest(tmp_path: Path, nvml_scene: Path) -> None:
    import errno

    Scene(rules=(Error("nvmlInit", "LIB_RM_VERSION_MISMATCH"),)).save(nvml_scene)
    found = ask(tmp_path / "nvidiactl")
    assert (found.cards, found.control_errno) == ((), errno.ENOENT)
