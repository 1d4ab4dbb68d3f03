import time
from pathlib import Path

from gua.doctor.check import Check
from gua.doctor.render_text import render_doctor
from gua.doctor.run import to_document
from tests.agent.running import add_pci_card, check_of, run_gua, run_json
from tests.nvml_stub import Card, Delay, Error, Scene

IDS = {
    *("os", "device_files", "pci", "nvidia_smi", "nvml", "driver_match", "persistence_mode", "hidepid"),
    *("pid_namespace", "database", "database_rights", "database_filesystem", "daemon", "cloud"),
}


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


def test_a_host_with_a_working_driver_is_ready(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"), Card("GPU-b"))).save(nvml_scene)
    document = run_json(tmp_path, "doctor")
    assert document["schema"] == "gua.doctor/1"
    assert {check["id"] for check in document["checks"]} == IDS
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


def test_a_driver_that_hangs_is_told_long_before_it_answers(tmp_path: Path, nvml_scene: Path) -> None:
    hangs = Delay("nvmlDeviceGetUtilizationRates", 240_000, masked=True)
    Scene(cards=(Card("GPU-a", rules=(hangs,)),)).save(nvml_scene)
    begin = time.monotonic()
    document = run_json(tmp_path, "doctor")
    assert time.monotonic() - begin < 45  # less than the minute that a start of NVML may take
    assert check_of(document, "nvml")["summary"] == "NVML does not answer"


def test_a_controller_gets_a_frame(tmp_path: Path, nvml_scene: Path) -> None:
    from gua.frames import unwrap_document

    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    done = run_gua(tmp_path, "doctor", "--frame", "0" * 32)
    assert '"gua.doctor/1"' in unwrap_document(done.stdout.encode(), "0" * 32)
