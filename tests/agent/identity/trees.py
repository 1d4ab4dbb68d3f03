"""Fake /proc trees on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Optional

BOOT_ID = "6f1d0c9a-0000-4000-8000-000000000001"
NO_LOGIN = 4294967295


def make_procfs(root: Path, *, namespace: Optional[int] = 4026531836) -> Path:
    """An empty procfs in the host's own PID namespace (or another inode; None: not shown)."""
    (root / "sys/kernel/random").mkdir(parents=True)
    (root / "sys/kernel/random/boot_id").write_text(BOOT_ID + "\n")
    if namespace is not None:
        (root / "self/ns").mkdir(parents=True)
        (root / "self/ns/pid").symlink_to(f"pid:[{namespace}]")
    return root


def mount_line(device: str, root: str, point: str, kind: str = "ext4", source: str = "/dev/sda1") -> str:
    """One line of mountinfo, its fields as the kernel escapes them."""
    return f"701 690 {device} {root} {point} rw,relatime master:1 - {kind} {source} rw"


def stat_line(pid: int, name: bytes, parent: int, start: int) -> bytes:
    rest = " ".join(["S", str(parent)] + ["0"] * 17 + [str(start)] + ["0"] * 30)
    return b"%d (%s) %s\n" % (pid, name, rest.encode())


def add_process(
    root: Path,
    pid: int,
    *,
    uid: int = 1001,
    login: Optional[int] = NO_LOGIN,
    parent: int = 1,
    start: int = 100,
    name: bytes = b"python3",
    cgroups: Sequence[str] = ("0::/init.scope",),
    mounts: Sequence[str] = (),
) -> None:
    """One process; login None: a kernel without audit has no such file."""
    directory = root / str(pid)
    directory.mkdir(exist_ok=True)
    (directory / "stat").write_bytes(stat_line(pid, name, parent, start))
    (directory / "status").write_text(f"Name:\tx\nUid:\t{uid}\t0\t0\t0\nGid:\t1\t1\t1\t1\n")
    (directory / "cgroup").write_text("".join(f"{line}\n" for line in cgroups))
    (directory / "mountinfo").write_text("".join(f"{line}\n" for line in mounts))
    if login is not None:
        (directory / "loginuid").write_text(str(login))
