import os
from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest

from gua.doctor.host import (
    check_clock,
    check_device_files,
    check_hidepid,
    check_nvidia_smi,
    check_os,
    check_pci,
    check_pid_namespace,
)
from gua.identity.proc import ProcFs
from gua.model import CardReading, Snapshot
from gua.pci import PciDevice
from tests.agent.identity.trees import make_procfs

BUS = [PciDevice(f"0000:0{n}:00.0", "nvidia") for n in range(1, 5)]


def seen(*numbers: int) -> Snapshot:
    """NVML's view of the cards in these slots, with its own spelling of addresses."""
    return Snapshot(cards=tuple(CardReading(f"GPU-{n}", n, f"00000000:0{n}:00.0") for n in numbers))


def test_this_system_is_good_enough_and_named() -> None:
    check = check_os()
    assert check.status == "ok"
    assert "Python" in check.summary


def test_as_many_cards_as_on_the_bus_is_ok() -> None:
    check = check_pci(BUS, seen(1, 2, 3, 4))
    assert (check.status, check.details["gpus"]) == ("ok", 4)


def test_a_card_that_nvml_does_not_see_is_named_by_its_address() -> None:
    check = check_pci(BUS, seen(1, 2, 4))
    assert check.status == "fail"
    assert check.summary == "NVML has 3 of 4 cards: 0000:03:00.0 absent"
    assert check.cure is not None


def test_a_card_given_to_a_virtual_machine_is_not_missed() -> None:
    check = check_pci([*BUS[:3], PciDevice("0000:04:00.0", "vfio-pci")], seen(1, 2, 3))
    assert (check.status, check.summary) == ("ok", "4 NVIDIA devices on the PCI bus, 1 given to another driver")


def test_a_card_in_mig_mode_without_an_instance_has_no_address_to_miss() -> None:
    three = seen(1, 2, 3)
    assert check_pci(BUS, replace(three, mig_parents=("GPU-split",))).status == "ok"
    assert (
        check_pci([*BUS, PciDevice("0000:05:00.0", "nvidia")], replace(three, mig_parents=("GPU-split",))).status
        == "fail"
    )


@pytest.mark.parametrize(("devices", "status"), [([], "warn"), (None, "skip")])
def test_no_card_on_the_bus_is_no_failure_even_when_nvml_has_one(
    devices: Optional[list[PciDevice]], status: str
) -> None:
    assert check_pci(devices, Snapshot()).status == status
    assert check_pci(devices, seen(1)).status == status


def test_nvml_that_does_not_work_is_not_told_twice() -> None:
    assert check_pci(BUS, Snapshot(unresponsive=True)).status == "ok"


def test_device_files_there_and_usable(tmp_path: Path) -> None:
    for name in ("nvidiactl", "nvidia0", "nvidia1", "nvidia-uvm"):
        (tmp_path / name).touch()
    check = check_device_files(tmp_path, gpu_less=False, nvml_works=True)
    assert (check.status, len(check.details["files"])) == ("ok", 3)


def test_device_files_that_are_not_there_fail_unless_nvml_works(tmp_path: Path) -> None:
    assert check_device_files(tmp_path, gpu_less=False, nvml_works=False).status == "fail"
    assert check_device_files(tmp_path, gpu_less=False, nvml_works=True).status == "warn"
    assert check_device_files(tmp_path, gpu_less=True, nvml_works=False).status == "skip"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may use everything")
def test_device_files_one_may_not_use_fail(tmp_path: Path) -> None:
    (tmp_path / "nvidiactl").touch(mode=0o000)
    assert check_device_files(tmp_path, gpu_less=False, nvml_works=False).status == "fail"


def mountinfo(options: str) -> str:
    return f"22 27 0:21 / /proc rw,relatime - proc proc {options}\n23 22 0:9 / /proc/fs rw - tmpfs tmpfs rw\n"


@pytest.mark.parametrize(
    ("options", "groups", "root", "status"),
    [
        ("rw", [], False, "ok"),
        ("rw,hidepid=0", [], False, "ok"),
        ("rw,hidepid=2", [], False, "warn"),
        ("rw,hidepid=invisible", [], False, "warn"),
        ("rw,gid=99,hidepid=2", [99], False, "ok"),
        ("rw,gid=99,hidepid=2", [100], False, "warn"),
        ("rw,hidepid=2", [0], False, "warn"),
        ("rw,hidepid=2", [], True, "ok"),
    ],
)
def test_hidden_processes_are_told_unless_this_user_sees_them(
    options: str, groups: list[int], root: bool, status: str
) -> None:
    assert check_hidepid(mountinfo(options), groups=groups, root=root).status == status


def test_a_foreign_pid_namespace_is_told_unless_trusted(tmp_path: Path) -> None:
    host, box = ProcFs(make_procfs(tmp_path / "h")), ProcFs(make_procfs(tmp_path / "b", namespace=4026532999))
    assert check_pid_namespace(host, trusted=False).status == "ok"
    assert check_pid_namespace(box, trusted=False).status == "warn"
    assert check_pid_namespace(box, trusted=True).status == "ok"


SMI = "/usr/bin/nvidia-smi"
SMI_HELP = "NVIDIA System Management Interface -- v570.86.15\n\nNVSMI provides monitoring information"


@pytest.mark.parametrize(
    ("found", "told", "module", "gpu_less", "status", "version"),
    [
        (SMI, SMI_HELP, "570.86.15", False, "ok", "570.86.15"),
        (SMI, SMI_HELP, None, False, "ok", "570.86.15"),
        (SMI, SMI_HELP, "535.104.05", False, "warn", "570.86.15"),
        (SMI, "", "570.86.15", False, "ok", None),
        (None, "", "570.86.15", False, "warn", None),
    ],
)
def test_the_vendors_tool_is_told_with_its_version(
    found: Optional[str], told: str, module: Optional[str], gpu_less: bool, status: str, version: Optional[str]
) -> None:
    check = check_nvidia_smi(found, told, module, gpu_less=gpu_less)
    assert (check.status, check.details["version"]) == (status, version)


def test_without_a_card_nobody_misses_the_vendors_tool() -> None:
    assert check_nvidia_smi(None, "", None, gpu_less=True).status == "skip"


NOW_MS = 1_767_225_600_000


@pytest.mark.parametrize(
    ("now_ms", "newest_ms", "status"),
    [
        (NOW_MS, None, "ok"),
        (NOW_MS, NOW_MS - 10_000, "ok"),
        (NOW_MS, NOW_MS + 300_000, "ok"),
        (NOW_MS, NOW_MS + 300_001, "warn"),
        (3_600_000, None, "fail"),
        (3_600_000, NOW_MS, "fail"),
    ],
)
def test_a_clock_that_was_never_set_fails_and_one_behind_the_history_warns(
    now_ms: int, newest_ms: Optional[int], status: str
) -> None:
    assert check_clock(now_ms, newest_ms).status == status
