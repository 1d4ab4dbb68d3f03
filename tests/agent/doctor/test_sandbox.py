import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Optional

import pytest

from gua.doctor.check import Check
from gua.doctor.sandbox import check_sandbox
from tests.agent.running import check_of, environment

HOST = "22 1 0:5 / /dev rw,nosuid - devtmpfs udev rw\n"
PRIVATE = HOST + "99 22 0:77 / /dev ro,nosuid - tmpfs tmpfs rw\n"
OURS = "LoadState=loaded\nPrivateDevices=no\nDevicePolicy=auto\nDeviceAllow=\n"
NO_UNIT = "LoadState=not-found\nPrivateDevices=no\nDevicePolicy=auto\nDeviceAllow=\n"


def check(
    unit: str = OURS, mountinfo: str = HOST, *, loaded: bool = True, there: bool = True, error: Optional[int] = None
) -> Check:
    return check_sandbox(unit, mountinfo, driver_loaded=loaded, control_there=there, control_errno=error)


def test_the_units_own_settings_hide_nothing() -> None:
    assert check().status == "ok"
    assert check(NO_UNIT).status == "ok"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("PrivateDevices=yes\nDevicePolicy=closed", "PrivateDevices=yes"),
        ("PrivateDevices=no\nDevicePolicy=closed\nDeviceAllow=/dev/null rw", "DevicePolicy=closed"),
        ("PrivateDevices=no\nDevicePolicy=strict", "DevicePolicy=strict"),
        ("PrivateDevices=no\nDevicePolicy=auto\nDeviceAllow=/dev/fuse rw", "DeviceAllow names no nvidia device"),
    ],
)
def test_a_unit_that_hides_the_devices_fails_whatever_this_process_sees(setting: str, told: str) -> None:
    found = check(f"LoadState=loaded\n{setting}\n")
    assert found.status == "fail"
    assert told in found.summary
    assert "PrivateDevices=no" in (found.cure or "")


@pytest.mark.parametrize("setting", ["ProtectProc=invisible", "ProcSubset=pid", "PrivateUsers=yes"])
def test_a_unit_that_hides_other_people_warns_that_users_will_be_unknown(setting: str) -> None:
    found = check(f"{OURS}{setting}\n")
    assert found.status == "warn"
    assert f"users will be unknown: {setting}" in found.summary


def test_values_of_a_unit_that_hide_nobody_are_fine() -> None:
    assert check(f"{OURS}ProtectProc=default\nProcSubset=all\nPrivateUsers=no\n").status == "ok"


@pytest.mark.parametrize(
    "allowed",
    ["char-nvidia* rw", "/dev/nvidiactl rw\nDeviceAllow=/dev/null rw", "/dev/null rw\nDeviceAllow=/dev/nvidiactl rw"],
)
def test_a_unit_that_lets_the_drivers_devices_through_is_fine(allowed: str) -> None:
    assert check(f"LoadState=loaded\nPrivateDevices=no\nDevicePolicy=closed\nDeviceAllow={allowed}\n").status == "ok"


def test_a_dev_of_ones_own_without_the_files_fails() -> None:
    found = check("", PRIVATE, there=False)
    assert (found.status, "a /dev of its own" in found.summary) == ("fail", True)


def test_a_container_that_was_given_the_files_is_fine() -> None:
    assert check("", PRIVATE).status == "ok"


def test_missing_files_in_the_hosts_own_dev_are_no_sandbox() -> None:
    assert check("", HOST, there=False).status == "ok"


@pytest.mark.parametrize(("error", "status"), [(errno.EPERM, "fail"), (errno.EACCES, "ok"), (errno.EIO, "ok")])
def test_only_a_device_policy_answers_eperm(error: int, status: str) -> None:
    assert check(error=error).status == status


def test_without_a_driver_there_is_nothing_to_hide() -> None:
    assert check("", loaded=False, there=False).status == "skip"
    assert check(NO_UNIT, PRIVATE, loaded=False, there=False).status == "skip"


# A /dev as PrivateDevices makes it: a file system of its own with hardly anything in it
PRIVATE_DEV = 'mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 && exec "$@"'


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root may mount")
def test_a_real_private_dev_is_told_in_a_host_whose_driver_is_loaded(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    (proc / "driver/nvidia").mkdir(parents=True)
    (proc / "driver/nvidia/version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat\n")
    (proc / "self").symlink_to("/proc/self")
    inside = ("unshare", "--mount", "sh", "-c", PRIVATE_DEV, "sh")
    if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        pytest.skip("no right to mount here")
    done = subprocess.run(
        [*inside, sys.executable, "-m", "gua", "doctor", "--json"],
        env=environment(tmp_path, GUA_PROCFS_ROOT=str(proc)),
        capture_output=True,
        text=True,
        timeout=90,
    )
    found = check_of(json.loads(done.stdout), "sandbox")
    assert (found["status"], "a /dev of its own" in found["summary"]) == ("fail", True)
