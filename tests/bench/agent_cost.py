"""What the agent costs its host: a script to look at (`PYTHONPATH=agent python -m tests.bench.agent_cost`), no test.

    python -m tests.bench.agent_cost [TICKS]     TICKS: for the growth, 10,000 unless told

Eight cards, two processes each, the C stub in place of the driver. CPU and memory are those of a real daemon and its
child together, after start-up; growth and descriptors are of the same code in this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gua.clock import SystemClock
from gua.config import load_settings
from gua.nvml.client import WorkerClient
from gua.recording import open_recording, open_source
from tests.nvml_stub import GIB, Card, Process, Samples, Scene, Use, build
from tests.nvml_stub.fixture import BUILD_DIR

CARDS, PROCESSES = 8, 16
INTERVAL_S = 0.2
WARM_TICKS, MEASURED_TICKS = 25, 150
RESTARTS = 100
STUB_CALLS = 20_000
# Of a tick: thirteen of each card, those for lists twice, for their length and their content.
C_CALLS = 8 * 18
GOAL_CPU_MS, GOAL_RSS_MB = 5.0, 60.0
# peewee loads psycopg wherever it is installed, and that asyncio: 9 MB. It is in no environment made for an agent.
_DAEMON = "import sys; sys.modules['psycopg'] = None; from gua.cli.main import main; sys.exit(main())"


def scene(pids: list[int], *, generation: int = 0) -> Scene:
    """Every card has a full buffer of samples, two processes, and samples of both."""
    cards = []
    for index in range(CARDS):
        held = pids[index::CARDS]
        cards.append(
            Card(
                f"GPU-{index}",
                util=50,
                memory_used=20 * GIB,
                processes=tuple(Process(pid, 10 * GIB) for pid in held),
                samples=Samples(tuple((1_000_000 + n, 50) for n in range(100))),
                process_uses=tuple(Use(pid, 1_000_000, 40) for pid in held),
            )
        )
    return Scene(cards=tuple(cards), generation=generation)


@contextlib.contextmanager
def holders() -> Iterator[list[int]]:
    """Processes for the cards to list: their /proc is read at every tick."""
    sleepers = [subprocess.Popen(["sleep", "86400"]) for _ in range(PROCESSES)]
    try:
        yield [sleeper.pid for sleeper in sleepers]
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def say(what: str, figure: str, goal: str = "") -> None:
    sys.stdout.write(f"{what:52} {figure:>14}  {goal}\n")
    sys.stdout.flush()


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_s(pid: int) -> float:
    """Time on a processor, of all threads, as the scheduler counts it: /proc/PID/stat is too coarse."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def resident_mb(pid: int) -> float:
    """Resident size; pages that both processes share count in both."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


def measure_daemon(folder: Path) -> None:
    command = [sys.executable, "-c", _DAEMON, "daemon", "--foreground", "--interval", f"{INTERVAL_S * 1000:.0f}ms"]
    daemon = subprocess.Popen([*command, "--db", str(folder / "daemon.db")], stderr=subprocess.DEVNULL)
    try:
        time.sleep(WARM_TICKS * INTERVAL_S + 3)
        both = [daemon.pid, *children(daemon.pid)]
        before_s = {pid: cpu_s(pid) for pid in both}
        time.sleep(MEASURED_TICKS * INTERVAL_S)
        used_ms = {pid: (cpu_s(pid) - before_s[pid]) * 1000 / MEASURED_TICKS for pid in both}
        for pid, name in zip(both, ("daemon", "child")):
            say(f"  {name}: CPU per tick, resident", f"{used_ms[pid]:.2f} ms", f"{resident_mb(pid):.1f} MB")
        say("CPU per tick, both", f"{sum(used_ms.values()):.2f} ms", f"goal {GOAL_CPU_MS} ms")
        say("resident, both", f"{sum(map(resident_mb, both)):.1f} MB", f"goal {GOAL_RSS_MB} MB")
    finally:
        daemon.terminate()
        daemon.wait()


def measure_stub(library: Path) -> None:
    """What the stub spends on looking at its scene at every call; a driver has costs of its own in its place."""
    stub, text = ctypes.CDLL(str(library)), ctypes.create_string_buffer(80)
    stub.nvmlInit_v2()

    def each_us(call: Callable[[], object]) -> float:
        before_s = time.process_time()
        for _ in range(STUB_CALLS):
            call()
        return (time.process_time() - before_s) / STUB_CALLS * 1e6

    looking_us = each_us(lambda: stub.nvmlSystemGetDriverVersion(text, 80)) - each_us(lambda: stub.nvmlErrorString(0))
    say("  of that the stub's own, about", f"{looking_us * C_CALLS / 1000:.2f} ms", f"{looking_us:.1f} us a call")


def measure_growth(folder: Path, ticks: int) -> None:
    clock, settings = SystemClock(), load_settings(environ={})
    source = open_source(settings, clock, fake=False)
    sizes: list[float] = []
    with open_recording(folder / "growth.db", clock, fake=False, alone=True) as writer:
        writer.begin_run("daemon", 30_000, settings.rule, "bench")
        for tick in range(ticks + 1):
            known = writer.known_devices()
            writer.write_tick(source.collect(ts_ms=tick * 30_000, cover_ms=30_000, known=known))
            if tick in (ticks // 10, ticks // 2, ticks):
                sizes.append(sum(map(resident_mb, [os.getpid(), *_workers()])))
    source.close()
    for begin, first, last in ((ticks // 10, 0, 1), (ticks // 2, 1, 2)):
        end = ticks // 2 if last == 1 else ticks
        say(
            f"growth from tick {begin} to {end}, both",
            f"{sizes[last] - sizes[first]:+.2f} MB",
            "goal 0.2 MB",
        )


def _workers() -> list[int]:
    return [pid for pid in children(os.getpid()) if b"gua.nvml.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def measure_restarts(path: Path, pids: list[int]) -> None:
    client = WorkerClient(clock=SystemClock())
    while not client.sample().cards:
        pass
    before = len(os.listdir("/proc/self/fd"))
    for generation in range(1, RESTARTS + 1):
        scene(pids, generation=generation).save(path)
        client.sample()  # meets the reloaded driver
        while not client.sample().cards:
            pass
    say(f"descriptors more after {RESTARTS} new children", str(len(os.listdir("/proc/self/fd")) - before), "goal 0")
    client.close()


def main(ticks: int) -> None:
    with tempfile.TemporaryDirectory() as name, holders() as pids:
        folder = Path(name)
        library = build(BUILD_DIR)
        os.environ["LD_LIBRARY_PATH"] = str(library.parent)
        os.environ["GUA_NVML_SCENE"] = str(scene(pids).save(folder / "scene"))
        measure_daemon(folder)
        measure_stub(library)
        measure_restarts(folder / "scene", pids)
        measure_growth(folder, ticks)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
