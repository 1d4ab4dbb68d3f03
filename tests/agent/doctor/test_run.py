import json
import threading
import time
from pathlib import Path

import pytest

from gua.clock import SystemClock
from gua.doctor.check import QUESTIONS, Check
from gua.doctor.driver import check_nvml
from gua.doctor.render_text import render_doctor
from gua.doctor.run import run_doctor, sampling_deadline_s, to_document
from gua.location import Location
from gua.model import CardReading, Fault, FaultKind, KnownDevice, LostSlot, Reason, Snapshot, TickStatus
from gua.reconcile import reconcile
from tests.agent.running import add_pci_card, check_of, run_gua, run_json
from tests.agent.test_collect import OneSnapshot
from tests.nvml_stub import Card, Delay, Error, Scene


def test_the_worst_comes_first_and_one_failure_is_not_ready() -> None:
    checks = [
        Check("a", "ok", "fine"),
        Check("b", "skip", "left out"),
        Check("c", "warn", "hm"),
        Check("d", "fail", "!"),
    ]
    document = to_document(checks, 0)
    assert [check["id"] for check in document["checks"]] == ["d", "c", "a", "b"]
    assert document["ready"] is False
    assert to_document(checks[:3], 0)["ready"] is True


def test_people_get_the_cure_below_the_check() -> None:
    text = render_doctor(to_document([Check("nvml", "fail", "gone", "reboot")], 0))
    assert text.splitlines()[1].strip() == "-> reboot"
    assert text.endswith("not ready\n")


def test_what_a_driver_says_cannot_steer_the_terminal() -> None:
    text = render_doctor(to_document([Check("nvml", "fail", "GPU-\x1b[2J\n: gone", "a\rb")], 0))
    assert text.count("\n") == 3
    assert r"GPU-\x1b[2J\x0a: gone" in text
    assert "\r" not in text


def test_a_host_with_a_working_driver_is_ready(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"), Card("GPU-b"))).save(nvml_scene)
    document = run_json(tmp_path, "doctor")
    assert document["schema"] == "gua.doctor/1"
    assert {check["id"] for check in document["checks"]} == set(QUESTIONS)
    assert document["ready"] is True
    assert check_of(document, "nvml")["details"]["gpus"] == 2
    assert check_of(document, "pci")["status"] == "warn"


def test_a_card_on_the_bus_without_a_driver_is_not_ready(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),)).save(nvml_scene)
    add_pci_card(tmp_path)
    done = run_gua(tmp_path, "doctor")
    assert done.returncode == 1
    assert done.stderr == ""
    assert done.stdout.startswith("fail ")
    assert "DRIVER_NOT_LOADED" in done.stdout


def test_a_host_without_a_card_is_ready_and_changes_nothing(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),)).save(nvml_scene)
    document = run_json(tmp_path, "doctor")
    assert document["ready"] is True
    assert (check_of(document, "nvml")["status"], check_of(document, "nvml")["details"]) == ("skip", {"gpus": 0})
    assert not (tmp_path / "gua.db").exists()


def test_a_card_that_only_the_history_knows_makes_no_host_without_a_card(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    run_gua(tmp_path, "sync-once", "--push", "never")
    Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),)).save(nvml_scene)
    document = run_json(tmp_path, "doctor")
    assert document["ready"] is False
    assert check_of(document, "nvml")["status"] == "fail"


@pytest.mark.processes
def test_a_driver_that_hangs_is_told_long_before_it_answers(tmp_path: Path, nvml_scene: Path) -> None:
    hangs = Delay("nvmlDeviceGetUtilizationRates", 240_000, masked=True)
    Scene(cards=(Card("GPU-a", rules=(hangs,)),)).save(nvml_scene)
    begin = time.monotonic()
    done = run_gua(tmp_path, "doctor", "--json")
    assert time.monotonic() - begin < 120
    assert done.stderr == ""
    summary = check_of(json.loads(done.stdout), "nvml")["summary"]
    assert summary == "NVML does not answer: nvmlDeviceGetUtilizationRates does not return in time on card GPU-a"


@pytest.mark.processes
def test_what_hangs_only_beyond_a_sample_leaves_the_rest_answered(tmp_path: Path, nvml_scene: Path) -> None:
    hangs = Delay("nvmlDeviceGetPersistenceMode", 240_000, masked=True)
    Scene(cards=(Card("GPU-a", rules=(hangs,)),)).save(nvml_scene)
    document = run_json(tmp_path, "doctor")
    assert check_of(document, "nvml")["status"] == "ok"
    assert check_of(document, "persistence_mode")["status"] == "skip"


@pytest.mark.parametrize(
    ("left_s", "set_s", "deadline_s"),
    [(9.0, 10.0, 7.0), (9.0, 4.0, 4.0), (6.5, 10.0, 4.5), (3.0, 10.0, 3.0), (-5.0, 10.0, 3.0)],
)
def test_a_program_that_started_slowly_samples_for_less_long(left_s: float, set_s: float, deadline_s: float) -> None:
    assert sampling_deadline_s(left_s, set_s) == deadline_s


def test_a_database_on_a_server_that_is_gone_is_told_like_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr("gua.doctor.database.look", lambda path, clock: release.wait(600))
    sampler = OneSnapshot(Snapshot(unresponsive=True))
    location = Location(tmp_path / "gua.db", "named by --db")
    document = run_doctor(
        sampler=sampler, clock=SystemClock(), location=location, trust_pid_namespace=False, left_s=0.3
    )
    release.set()
    assert sampler.closed
    assert {check["id"] for check in document["checks"]} == set(QUESTIONS)
    assert check_of(document, "database")["summary"].endswith("did not answer in time")


@pytest.mark.processes
def test_while_sampling_is_paused_the_driver_is_left_alone(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),)).save(nvml_scene)
    add_pci_card(tmp_path)
    assert run_gua(tmp_path, "pause", "--for", "1h").returncode == 0
    document = run_json(tmp_path, "doctor")
    skipped = {check["id"] for check in document["checks"] if check["status"] == "skip"}
    assert {"nvml", "mig", "bindings", "persistence_mode", "driver_match"} <= skipped
    run_gua(tmp_path, "resume")
    assert check_of(run_json(tmp_path, "doctor"), "nvml")["status"] == "fail"


@pytest.mark.processes
def test_a_lost_card_is_named_with_its_address_and_error(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"), Card("GPU-b", pci="00000000:3B:00.0"))).save(nvml_scene)
    run_gua(tmp_path, "sync-once", "--push", "never")
    lost = Error("nvmlDeviceGetHandleByIndex_v2", "GPU_IS_LOST")
    Scene(cards=(Card("GPU-a"), Card("GPU-b", pci="00000000:3B:00.0", rules=(lost,)))).save(nvml_scene)
    document = run_json(tmp_path, "doctor")
    check = check_of(document, "nvml")
    assert (check["status"], check["summary"]) == ("fail", "card 1 at 00000000:3B:00.0, GPU-b: GPU_IS_LOST")
    assert document["checks"][0]["id"] == "nvml"


LOST = Fault("nvmlDeviceGetHandleByIndex_v2", "GPU_IS_LOST", FaultKind.FAILED)
UNKNOWN = Fault("nvmlDeviceGetUtilizationRates", "UNKNOWN", FaultKind.FAILED)
CANNOT = Fault("nvmlDeviceGetTotalEnergyConsumption", "NOT_SUPPORTED", FaultKind.UNSUPPORTED)
KNOWN = KnownDevice("GPU-b", 1, "00000000:3B:00.0", "H100", 81559, None, 0, 1)


@pytest.mark.parametrize(
    "snapshot",
    [
        Snapshot(cards=(CardReading("GPU-b", 0),)),
        Snapshot(cards=(CardReading("GPU-b", 0, faults={"energy": CANNOT}),)),
        Snapshot(cards=(CardReading("GPU-b", 0, faults={"util": UNKNOWN}),)),
        Snapshot(cards=(CardReading("GPU-a", 0),)),
        Snapshot(cards=(CardReading("GPU-a", 0),), lost=(LostSlot(1, LOST),)),
        Snapshot(cards=(CardReading("GPU-b", 0, absent=Reason.CARD_LOST, faults={"util": LOST}),)),
        Snapshot(cards=(CardReading("GPU-b", 0),), lost=(LostSlot(1, LOST),)),
        Snapshot(fault=Fault("nvmlInit", "LIB_RM_VERSION_MISMATCH", FaultKind.FAILED)),
        Snapshot(unresponsive=True),
    ],
)
def test_the_doctor_and_the_daemon_judge_one_sample_alike(snapshot: Snapshot) -> None:
    status = reconcile(snapshot, [KNOWN]).status
    check = check_nvml(snapshot, [KNOWN], gpu_less=False)
    assert (check.status == "ok") == (status is TickStatus.OK)
    if status in (TickStatus.ERROR, TickStatus.UNRESPONSIVE):
        assert check.status == "fail"


def test_a_controller_gets_a_frame(tmp_path: Path, nvml_scene: Path) -> None:
    from gua.frames import unwrap_document

    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    done = run_gua(tmp_path, "doctor", "--frame", "0" * 32)
    assert '"gua.doctor/1"' in unwrap_document(done.stdout.encode(), "0" * 32)
