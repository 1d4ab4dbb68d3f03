"""What naming the processes on the cards costs a tick: `PYTHONPATH=agent python -m tests.bench.identity`, no test.

Sixteen real processes on this machine's /proc, beside an /etc/subuid of ten thousand people; and the mount tables of
a container that mounts thousands of things, on a host that does.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gua.clock import SystemClock
from gua.identity.accounts import AccountFiles
from gua.identity.mounts import mount_hint
from gua.identity.names import CachedLookup, look_up_name, look_up_uid
from gua.identity.proc import ProcFs
from gua.identity.users import Identifier

PROCESSES = 16
PEOPLE = 10_000
TICKS = 300
# Of the 5 ms that a whole tick may cost in both of the agent's processes together.
GOAL_MS = 1.0
MOUNTS = 5_000
# Once for each process of a container.
GOAL_MOUNTS_MS = 50.0


def measure_mounts() -> None:
    container = b"".join(b"7 6 0:44 /p%d/x /w%d rw - nfs4 nas:/x rw\n" % (n, n) for n in range(MOUNTS))
    host = b"".join(b"9 2 0:44 /export/d%d /d%d rw - nfs4 nas:/x rw\n" % (n, n) for n in range(MOUNTS))
    begin = time.process_time()
    mount_hint(container, host)
    used_ms = (time.process_time() - begin) * 1000
    sys.stdout.write(f"{'a process, once':20} {used_ms:8.3f} ms CPU for {MOUNTS} mounts (goal {GOAL_MOUNTS_MS} ms)\n")


def make_etc(folder: Path) -> Path:
    lines = (f"user{n}:{100_000 + 65_536 * n}:65536\n" for n in range(PEOPLE))
    (folder / "subuid").write_text("".join(lines))
    return folder


def main() -> None:
    started = [subprocess.Popen(["sleep", "600"]) for _ in range(PROCESSES)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            measure([process.pid for process in started], make_etc(Path(folder)))
        measure_mounts()
    finally:
        for process in started:
            process.kill()
            process.wait()


def measure(pids: list[int], etc: Path) -> None:
    clock = SystemClock()
    names, uids = CachedLookup(clock, look_up_name), CachedLookup(clock, look_up_uid)
    people = Identifier(
        ProcFs(Path("/proc")), names.get, uids.get, trust_pid_namespace=True, accounts=AccountFiles(etc).read
    )
    for label, ticks in (("the first tick", 1), ("every further tick", TICKS)):
        begin = time.process_time()
        for _ in range(ticks):
            people.identify(pids)
        each_ms = (time.process_time() - begin) * 1000 / ticks
        sys.stdout.write(f"{label:20} {each_ms:8.3f} ms CPU for {PROCESSES} processes (goal {GOAL_MS} ms)\n")


if __name__ == "__main__":
    main()
