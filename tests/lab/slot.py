"""A slot: the names, network and folder that one lab run owns, so that runs on one machine never meet.

The slot's lock is the only authority: whoever holds it may clear what an earlier, killed run left in that slot.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.lab.base import LAB_ROOT
from tests.lab.needs import LabUnavailable, cgroup2_mount

SLOTS = 16
NSPAWN_STATE = Path("/run/systemd/nspawn")


@dataclass(frozen=True)
class Slot:
    """number: 0..15. The network is a /24 of 198.18.0.0/15, which RFC 2544 keeps for tests: it is never routed."""

    number: int

    @property
    def prefix(self) -> str:
        """Begins every network namespace, link and machine name of this slot; two digits, so none begins another."""
        return f"gualab{self.number:02d}"

    @property
    def bridge(self) -> str:
        return f"{self.prefix}br"

    @property
    def directory(self) -> Path:
        return LAB_ROOT / "run" / f"{self.number:02d}"

    @property
    def cgroup(self) -> Path:
        return cgroup2_mount() / self.prefix

    def address(self, index: int) -> str:
        """Address of host `index` (1..200); 0 is the bridge, where the controller sits."""
        return f"198.18.{128 + self.number}.{10 + index}"


@contextmanager
def take_slot() -> Iterator[Slot]:
    """Own a free slot, cleared. What killed runs left in other free slots is cleared on the way."""
    taken: tuple[Slot, IO[str]] | None = None
    for slot in map(Slot, range(SLOTS)):
        lock = try_lock(slot)
        if lock is None:
            continue
        clear(slot)
        if taken is None:
            taken = (slot, lock)
        else:
            lock.close()
    if taken is None:
        raise LabUnavailable(f"all {SLOTS} lab slots are in use by other runs")
    try:
        yield taken[0]
    finally:
        clear(taken[0])
        taken[1].close()


def try_lock(slot: Slot) -> IO[str] | None:
    """The slot's open lock file, or None when another run holds it. Closing it frees the slot."""
    path = LAB_ROOT / "slots" / f"{slot.number:02d}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def clear(slot: Slot) -> None:
    """Remove everything of this slot from the machine. Only for the holder of its lock."""
    if slot.cgroup.exists():
        for cgroup in slot.cgroup.iterdir():
            if cgroup.is_dir():
                kill_cgroup(cgroup)
        slot.cgroup.rmdir()
    for mount in _mounts_below(slot.directory):
        status = mount.stat()
        (NSPAWN_STATE / "locks" / f"inode-{status.st_dev}:{status.st_ino}").unlink(missing_ok=True)
        subprocess.run(["umount", str(mount)], check=True)
    for namespace in _words("ip", "netns", "list"):
        if namespace.startswith(slot.prefix):
            subprocess.run(["ip", "netns", "delete", namespace], check=True)
    for link in Path("/sys/class/net").iterdir():
        if link.name.startswith(slot.prefix):
            # The other end of a veth pair goes with the first: a link that is already gone is no failure.
            subprocess.run(["ip", "link", "delete", link.name], check=False, capture_output=True)
    for state in NSPAWN_STATE.glob(f"*/{slot.prefix}*"):
        shutil.rmtree(state, ignore_errors=True)
    if slot.directory.exists():
        shutil.rmtree(slot.directory)


def kill_cgroup(cgroup: Path, deadline_s: float = 20) -> None:
    """End every process in `cgroup` at once, as a power cut would, and remove the group."""
    (cgroup / "cgroup.kill").write_text("1")
    end = time.monotonic() + deadline_s
    while "populated 0" not in (cgroup / "cgroup.events").read_text():
        if time.monotonic() > end:
            raise TimeoutError(f"processes in {cgroup} outlived their kill by {deadline_s} s")
        time.sleep(0.05)
    below = sorted((path for path in cgroup.rglob("*") if path.is_dir()), reverse=True)
    for group in [*below, cgroup]:
        group.rmdir()


def _mounts_below(directory: Path) -> list[Path]:
    """Mount points in `directory`, innermost first."""
    points = [Path(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in reversed(points) if directory in point.parents]


def _words(*command: str) -> list[str]:
    """The first word of each line that a command prints."""
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in printed.splitlines() if line.strip()]
