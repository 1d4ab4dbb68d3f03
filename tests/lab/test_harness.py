"""The lab itself: its hosts are real, separate, and gone afterwards, also after a run that was killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab import base
from tests.lab.harness import Lab
from tests.lab.host import HostFailed, LabHost
from tests.lab.needs import LabUnavailable
from tests.lab.slot import SLOTS, Slot, clear, take_slot, try_lock

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1500)]

BOOT_AND_WAIT = """
from tests.lab.harness import open_lab
with open_lab() as lab:
    lab.boot("doomed")
    lab.hosts["doomed"].delay(1)
    print(lab._slot.number, flush=True)
    input()
"""


def test_two_hosts_have_their_own_names_and_identities(lab: Lab) -> None:
    lab.boot("atlas", "boreas")
    names = [host.run("hostname").strip() for host in lab.hosts.values()]
    machines = {host.run("cat", "/etc/machine-id") for host in lab.hosts.values()}
    assert names == ["atlas", "boreas"]
    assert len(machines) == 2


def test_a_host_reaches_the_controller_and_nothing_beyond_it(lab: Lab) -> None:
    routes = lab.hosts["atlas"].run("ip", "route").split("\n")
    assert [route.split()[0] for route in routes if route] == [
        "198.18." + lab.hosts["atlas"].address.split(".")[2] + ".0/24"
    ]


def test_a_host_without_power_runs_nothing_and_comes_back_with_its_files(lab: Lab) -> None:
    host = lab.hosts["boreas"]
    host.run("sh", "-c", "echo kept > /var/note && sync")
    host.power_off()
    with pytest.raises(HostFailed, match="boreas is not running"):
        host.run("true")
    host.boot()
    host.wait_running()
    assert host.run("cat", "/var/note") == "kept\n"


def test_a_bad_link_is_late_or_silent_and_then_whole_again(lab: Lab) -> None:
    host = lab.hosts["atlas"]
    host.delay(500)
    began_s = time.monotonic()
    _connect(host)
    assert time.monotonic() - began_s > 0.99
    host.heal()
    host.lose(100)
    with pytest.raises(TimeoutError):
        _connect(host, timeout_s=3)
    host.heal()
    _connect(host)


def _connect(host: LabHost, timeout_s: float = 60) -> None:
    socket.create_connection((host.address, 22), timeout=timeout_s).close()


def test_a_second_run_takes_another_slot(lab: Lab) -> None:
    with take_slot() as slot:
        assert slot.address(1).split(".")[2] != lab.hosts["atlas"].address.split(".")[2]


def test_what_a_killed_run_left_is_cleared_by_the_next(lab: Lab) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", BOOT_AND_WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": "."},
    )  # fmt: skip
    with child:
        assert child.stdout is not None
        slot = Slot(int(child.stdout.readline()))
        assert _left_of(slot)
        child.send_signal(signal.SIGKILL)
    # Another run may be quicker to take the slot: then it has cleared it, and what is there now is its own.
    lock = try_lock(slot)
    if lock is not None:
        with lock:
            clear(slot)
            assert not _left_of(slot)


def test_a_folder_that_others_can_write_is_no_place_for_the_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    planted.chmod(0o777)
    link = tmp_path / "link"
    link.symlink_to("/")
    for place in (planted, link):
        monkeypatch.setattr(base, "LAB_ROOT", place)
        with pytest.raises(LabUnavailable, match=f"^{place} can be written by others"):
            base.ensure_base("bookworm")
        assert not (place / "base").exists()


def test_every_slot_has_names_that_begin_no_other(lab: Lab) -> None:
    prefixes = [Slot(number).prefix for number in range(SLOTS)]
    assert not [(a, b) for a in prefixes for b in prefixes if a != b and b.startswith(a)]


def _left_of(slot: Slot) -> list[str]:
    """Everything on this machine that bears the slot's name."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(slot.directory) in line]
    links = [link.name for link in Path("/sys/class/net").iterdir() if link.name.startswith(slot.prefix)]
    namespaces = [path.name for path in Path("/run/netns").glob(f"{slot.prefix}*")]
    folders = [str(path) for path in (slot.cgroup, slot.directory) if path.exists()]
    return [*mounts, *links, *namespaces, *folders]
