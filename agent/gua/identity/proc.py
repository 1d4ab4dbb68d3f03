"""Facts about processes, as /proc shows them. The only place that reads it for identity."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Optional

from gua.host import read_boot_id
from gua.identity.containers import container_id, slice_uid, slurm_job
from gua.text import decode_bytes

# The inode of the initial PID namespace: PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h.
_HOST_PID_NAMESPACE = "pid:[4026531836]"
# -1 as the kernel prints it: no login ever, a service or a container.
_NO_LOGIN_UID = 4294967295
# What the kernel shows for every uid that the reader's own user namespace has no number for.
_OVERFLOW_UID = 65534
# Deeper trees than this are loops or attacks; real ones have a dozen levels.
_MAX_ANCESTORS = 64
# A container may mount a hundred thousand things; a thousand lines are this much.
_MOUNTS_LIMIT = 256 << 10
# The other files have a few lines; only a process in thousands of cgroup hierarchies would fill this.
_FILE_LIMIT = 16 << 10
# Fifty numbers and a name.
_STAT_LIMIT = 4 << 10
_STAT_FIELDS = 20  # as many as are looked at; there are fifty


@dataclass(frozen=True)
class ProcessFacts:
    """One process at one moment. start_ticks: with pid and boot id its key (clock ticks since boot).

    owner_uid: the real uid, None when not shown, or when our user namespace has no number for it. login_uid: who logged
    in, None where nobody did or no audit is kept.
    cgroups: the paths it is in; what they tell (see gua.identity.containers) is found once.
    """

    pid: int
    start_ticks: int
    parent_pid: int
    name: str
    owner_uid: Optional[int]
    login_uid: Optional[int]
    cgroups: tuple[str, ...]

    @cached_property
    def container(self) -> Optional[str]:
        return container_id(self.cgroups)

    @cached_property
    def slurm_job(self) -> Optional[str]:
        return slurm_job(self.cgroups)

    @cached_property
    def slice_uid(self) -> Optional[int]:
        return slice_uid(self.cgroups)


@dataclass(frozen=True)
class Stat:
    """The fields of /proc/PID/stat that matter here."""

    name: str
    parent_pid: int
    start_ticks: int


@dataclass(frozen=True)
class Glance:
    """shown_uid: whom /proc shows as the owner, root for a process that the kernel holds undumpable."""

    stat: Stat
    shown_uid: int


class ProcFs:
    """A procfs mounted at `root`. Nothing here raises: what cannot be read is None."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._prefix = f"{root}/"

    def boot_id(self) -> str:
        """The id of this boot; empty where the kernel shows none."""
        return read_boot_id(self._root)

    def is_foreign_namespace(self) -> bool:
        """Whether our own process ids are those of a container, so that NVML's mean other processes here."""
        try:
            return os.readlink(self._root / "self/ns/pid") != _HOST_PID_NAMESPACE
        except OSError:
            return False

    def glance(self, pid: int) -> Optional[Glance]:
        """What one file shows of a process; None when it is gone or hidden from us."""
        try:
            fd = os.open(f"{self._prefix}{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            stat = parse_stat(os.read(fd, _STAT_LIMIT))
            return None if stat is None else Glance(stat, os.fstat(fd).st_uid)
        except OSError:
            return None
        finally:
            os.close(fd)

    def read_process(self, pid: int) -> Optional[ProcessFacts]:
        """The facts of one process; None when it is gone, hidden from us, or replaced while being read."""
        before = self._read_stat(pid)
        if before is None:
            return None
        facts = ProcessFacts(
            pid=pid,
            start_ticks=before.start_ticks,
            parent_pid=before.parent_pid,
            name=before.name,
            owner_uid=self._owner_uid(pid),
            login_uid=self._login_uid(pid),
            cgroups=self._cgroups(pid),
        )
        after = self._read_stat(pid)
        same = after is not None and after.start_ticks == before.start_ticks
        return facts if same else None

    def cpu_s(self, pid: int, start_ticks: int) -> Optional[float]:
        """CPU time that one process used so far, in seconds; None when it is gone, or hidden from us."""
        raw = self._read(f"{pid}/stat", _STAT_LIMIT)
        stat, fields = parse_stat(raw), raw.rpartition(b")")[2].split()
        if stat is None or stat.start_ticks != start_ticks:
            return None
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def ancestor_names(self, facts: ProcessFacts) -> Iterator[str]:
        """Names of parent, grandparent and so on, as far as they can be read."""
        pid = facts.parent_pid
        for _ in range(_MAX_ANCESTORS):
            stat = self._read_stat(pid) if pid > 0 else None
            if stat is None:
                return
            yield stat.name
            pid = stat.parent_pid

    def mounts(self, pid: int) -> bytes:
        """The mount table that a process sees, of a huge one the beginning; empty when it cannot be read."""
        return self._read(f"{pid}/mountinfo", _MOUNTS_LIMIT)

    def host_mounts(self) -> bytes:
        """The host's own mount table: that of its first process, for ours may be a unit's with a view of its own."""
        return self.mounts(1) or self._read("self/mountinfo", _MOUNTS_LIMIT)

    def _read_stat(self, pid: int) -> Optional[Stat]:
        return parse_stat(self._read(f"{pid}/stat", _STAT_LIMIT))

    def _owner_uid(self, pid: int) -> Optional[int]:
        # Not the directory's owner: that is root for a process that the kernel holds undumpable.
        _, _, line = self._read(f"{pid}/status").partition(b"\nUid:")
        uid = _number(line[:80].split(maxsplit=1)[:1])
        return None if uid == _OVERFLOW_UID and self._shows_overflow_uid else uid

    @cached_property
    def _shows_overflow_uid(self) -> bool:
        """Whether that uid may be anybody: our user namespace (a unit's PrivateUsers=) has no number for it."""
        ranges = [[int(word) for word in line.split()] for line in self._read("self/uid_map").splitlines()]
        return bool(ranges) and not any(first <= _OVERFLOW_UID < first + count for first, _, count in ranges)

    def _login_uid(self, pid: int) -> Optional[int]:
        uid = _number(self._read(f"{pid}/loginuid").split()[:1])
        return None if uid == _NO_LOGIN_UID else uid

    def _cgroups(self, pid: int) -> tuple[str, ...]:
        lines = decode_bytes(self._read(f"{pid}/cgroup")).splitlines()
        return tuple(line.split(":", 2)[2] for line in lines if line.count(":") >= 2)

    def _read(self, name: str, limit: int = _FILE_LIMIT) -> bytes:
        """The first `limit` bytes of a file; empty when it cannot be read. By bare calls: a tick reads a hundred."""
        try:
            fd = os.open(f"{self._prefix}{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            return _read_whole(fd, limit)
        except OSError:
            return b""
        finally:
            os.close(fd)


def _read_whole(fd: int, limit: int) -> bytes:
    found = os.read(fd, limit)
    while len(found) < limit:
        more = os.read(fd, limit - len(found))
        if not more:
            break
        found += more
    return found


def parse_stat(raw: bytes) -> Optional[Stat]:
    """Fields of a stat line; None when it is none. Pure.

    Split after the last `)`: a process may be called `x) S 1 1`.
    """
    left, found, right = raw.rpartition(b")")
    fields = right.split(None, _STAT_FIELDS)
    if not found or len(fields) < _STAT_FIELDS or b"(" not in left:
        return None
    parent, start = _number(fields[1:2]), _number(fields[19:20])
    if parent is None or start is None:
        return None
    return Stat(decode_bytes(left.split(b"(", 1)[1]), parent, start)


def _number(words: list[bytes]) -> Optional[int]:
    return int(words[0]) if words and words[0].isdigit() else None
