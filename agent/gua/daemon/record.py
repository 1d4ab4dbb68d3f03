"""Which process a daemon is, so surely that it may be signalled: a pid alone may be anybody's by now."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Optional

from gua.host import read_boot_id, read_machine_id

# Pids, signals and locks are this kernel's, whatever procfs the samples are read from.
_PROC = Path("/proc")
_LARGEST_BYTES = 4096
_TEXTS = ("boot_id", "machine_id", "host", "database", "unit")


@dataclass(frozen=True)
class DaemonRecord:
    """One daemon. As a file: the pid on the first line, for everybody's tools, and the rest as JSON on the second.

    start_ticks: when the process started, in clock ticks since boot; None in a file that has the pid only.
    boot_id, machine_id, host: where that pid means something. database: absolute path. unit: the systemd unit that it
    is the main process of, empty when it is none's.
    """

    pid: int
    start_ticks: Optional[int] = None
    boot_id: str = ""
    machine_id: str = ""
    host: str = ""
    database: str = ""
    unit: str = ""

    def to_text(self) -> str:
        rest = {name: value for name, value in asdict(self).items() if name != "pid"}
        return f"{self.pid}\n{json.dumps(rest)}\n"

    def is_of_this_host(self) -> bool:
        """Whether its pid is one of this host's; a file that says nothing of it was made here."""
        if self.machine_id and read_machine_id():
            return self.machine_id == read_machine_id()
        return self.host in ("", socket.gethostname())

    def in_this_boot(self) -> DaemonRecord:
        """The same, of this boot: for what is of now, whatever it says, as a lock that is held.

        In a container a service that is shut in sees the kernel's boot id, and its users the container's.
        """
        return replace(self, boot_id=read_boot_id(_PROC))

    def is_alive(self) -> bool:
        """Whether exactly this process lives here now, and not another one that was given its pid."""
        if not self.is_of_this_host() or self.boot_id != read_boot_id(_PROC):
            return False
        return self.start_ticks is not None and read_start_ticks(self.pid) == self.start_ticks


def own_record(database: Path, environ: Mapping[str, str] = os.environ) -> DaemonRecord:
    """The record of this process."""
    return DaemonRecord(
        pid=os.getpid(),
        start_ticks=read_start_ticks(os.getpid()),
        boot_id=read_boot_id(_PROC),
        machine_id=read_machine_id(),
        host=socket.gethostname(),
        database=str(database.absolute()),
        # A unit that only started somebody who started us must not be named: stopping it would stop the wrong thing
        unit=_unit(os.getpid()) if environ.get("NOTIFY_SOCKET") else "",
    )


def parse_record(raw: bytes) -> Optional[DaemonRecord]:
    """The record in a file's content; None when it is no such file. Pure."""
    first, _, rest = raw.decode("utf-8", "replace").partition("\n")
    number = first.strip()
    if not re.fullmatch(r"[0-9]{1,10}", number) or int(number) < 1:
        return None
    try:
        more = json.loads(rest)
    except (ValueError, RecursionError):
        more = None
    return DaemonRecord(pid=int(number), **_fitting(more if isinstance(more, dict) else {}))


def _fitting(written: Mapping[str, Any]) -> dict[str, Any]:
    """Of what a file says, the fields that we know and that are of their kind."""
    kinds: dict[str, type] = {"start_ticks": int, **dict.fromkeys(_TEXTS, str)}
    return {name: value for name, value in written.items() if name in kinds and type(value) is kinds[name]}


def read_record(fd: int) -> Optional[DaemonRecord]:
    """The record in an open file."""
    return parse_record(os.pread(fd, _LARGEST_BYTES, 0))


def read_start_ticks(pid: int) -> Optional[int]:
    """When a process of this host started, in clock ticks since boot; None when there is none, or only its remains."""
    try:
        raw = (_PROC / str(pid) / "stat").read_bytes()
        state, *more = raw.rpartition(b")")[2].split()
        return None if state in (b"Z", b"X") else int(more[18])
    except (OSError, LookupError, ValueError):
        return None


def age_of_ticks_s(start_ticks: int) -> float:
    """How long ago a process started that started then, in seconds, suspended time included."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / os.sysconf("SC_CLK_TCK"))


def children_of(pid: int) -> dict[int, Optional[int]]:
    """The processes that one started and that still are: pid -> start_ticks. Empty where the kernel does not tell."""
    found: dict[int, Optional[int]] = {}
    for path in _PROC.glob(f"{pid}/task/*/children"):
        try:
            found.update({int(word): read_start_ticks(int(word)) for word in path.read_text().split()})
        except (OSError, ValueError):
            continue
    return found


def _unit(pid: int) -> str:
    """The service that a process runs in (`gua-agent.service`); empty when it is in none."""
    try:
        text = (_PROC / str(pid) / "cgroup").read_text()
    except OSError:
        return ""
    names = re.findall(r"/([^/\n]+\.service)$", text, flags=re.MULTILINE)
    return names[0] if names else ""
