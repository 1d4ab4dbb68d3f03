"""A long run under random faults: a script to look at, no test.

    python -m tests.bench.soak [TICKS [SEED [DEADLINE_S]]]     7200, 1 and 6 unless told

Four cards at 50 ms, until so many ticks are taken (7,200: six minutes, and what hangs cost beside), through the
daemon's own loop, sampling child and database. Every second or so another fault begins or ends: an error, a hang,
slowness or rubbish on the one card that may be sick, a driver that is reloaded, missing or mismatched, a child that is
killed or stopped. The three healthy cards may not lose a tick but to the driver or the child itself, and everything
must be whole within two ticks after such a fault. Ticks that fall out because a stopped child is waited for, or because
this machine is busy, are nobody's: they are not taken.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gua.clock import SystemClock
from gua.collect import TickSource
from gua.config import load_settings
from gua.daemon.bus import MadeUpBus
from gua.daemon.gate import PauseGate
from gua.daemon.loop import run_loop
from gua.daemon.notify import Notifier
from gua.model import KnownDevice, State, Tick
from gua.recording import open_recording, open_source
from tests.nvml_stub import Card, Delay, Error, Process, Scene, build

INTERVAL_MS = 50
# Half of it is how long a call may take before it counts as hung, and what is left for a new child: on a busy machine a
# second can be too short for that (seen there: ticks lost to hangs at 2 s, none at 10 s).
DEADLINE_S = 6.0
HEALTHY = ("GPU-0", "GPU-1", "GPU-2")
CALLS = (
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetTotalEnergyConsumption",
    "*",
)
ERRORS = ("UNKNOWN", "GPU_IS_LOST", "NOT_SUPPORTED", "NO_PERMISSION", "FUNCTION_NOT_FOUND", "IRQ_ISSUE", "TIMEOUT")
# On one card only these are that card's trouble too.
ERRORS += ("UNINITIALIZED", "DRIVER_NOT_LOADED")
# So long for every call that a sample with that card would not come to its end.
SLOW_MS = 600
KINDS = ("none", "none", "error", "error", "hang", "slow", "rubbish", "reload", "init", "kill", "stop")
CONCERNS = {
    **dict.fromkeys(("error", "hang", "slow", "rubbish"), "card"),
    **dict.fromkeys(("reload", "init"), "driver"),
    **dict.fromkeys(("kill", "stop"), "child"),
}
# Kinds of faults that no card can be spared.
ALL_CARDS = ("driver", "child")
DRIVER_ERRORS = ("DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH", "UNKNOWN")


@dataclass
class Faults:
    """What is wrong just now. concerns: `none`, `card`, `driver` or `child`."""

    rng: random.Random
    scene: Path
    generation: int = 0
    concerns: str = "none"
    concerned_before: str = "none"
    seen: Counter[str] = field(default_factory=Counter)

    def save(self, sick: Sequence[Error | Delay] = (), rules: Sequence[Error | Delay] = (), util: int = 7) -> None:
        cards = [Card(uuid, util=20 + n, processes=(Process(os.getpid()),)) for n, uuid in enumerate(HEALTHY)]
        last = Card("GPU-3", util=util, rules=tuple(sick))
        Scene(cards=(*cards, last), rules=tuple(rules), generation=self.generation).save(self.scene)

    def change(self, child: int | None) -> None:
        """Another fault, or none."""
        kind = self.rng.choice(KINDS)
        self.seen[kind] += 1
        self.concerned_before = self.concerns
        self.concerns = CONCERNS.get(kind, "none")
        getattr(self, f"_{kind}", lambda _: self.save())(child)

    def _error(self, child: int | None) -> None:
        self.save([Error(self.rng.choice(CALLS), self.rng.choice(ERRORS))])

    def _hang(self, child: int | None) -> None:
        self.save([Delay(self.rng.choice(CALLS[:-1]), 600_000, masked=self.rng.random() < 0.5)])

    def _slow(self, child: int | None) -> None:
        self.save([Delay("*", SLOW_MS)])

    def _rubbish(self, child: int | None) -> None:
        self.save(util=4_000_000_000)

    def _reload(self, child: int | None) -> None:
        self.generation += 1
        self.save()

    def _init(self, child: int | None) -> None:
        self.generation += 1
        self.save(rules=[Error("nvmlInit", self.rng.choice(DRIVER_ERRORS))])

    def _kill(self, child: int | None) -> None:
        self._signal(child, signal.SIGKILL)

    def _stop(self, child: int | None) -> None:
        self._signal(child, signal.SIGSTOP)

    def _signal(self, child: int | None, number: int) -> None:
        self.save()
        if child is not None:
            os.kill(child, number)


@dataclass
class Watched:
    """The daemon's source: changes the faults before a tick, and counts what came of it."""

    source: TickSource
    faults: Faults
    statuses: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    worst_recovery: int = 0
    most_children: int = 0
    _next_s: float = 0.0
    _since_change: int = 0

    def collect(self, *, ts_ms: int, cover_ms: int, known: Sequence[KnownDevice]) -> Tick:
        if time.monotonic() >= self._next_s:
            self.faults.change(next(iter(children()), None))
            self._next_s = time.monotonic() + self.faults.rng.uniform(0.2, 2.0)
            self._since_change = 0
        tick = self.source.collect(ts_ms=ts_ms, cover_ms=cover_ms, known=known)
        self._since_change += 1
        self._count(tick)
        return tick

    def _count(self, tick: Tick) -> None:
        self.statuses[tick.status.value] += 1
        self.most_children = max(self.most_children, len(children()))
        states = {card.reading.uuid: card.verdict.state for card in tick.cards}
        blind = sum(states.get(uuid, State.UNKNOWN) is State.UNKNOWN for uuid in HEALTHY)
        if not blind:
            return
        if self.faults.concerns in ALL_CARDS:
            self.lost[f"to a {self.faults.concerns} fault"] += blind
            return
        # What a fault of the driver or the child left behind has two ticks to go
        left_behind = self.faults.concerned_before in ALL_CARDS and self._since_change <= 2
        self.lost[f"just after a {self.faults.concerned_before} fault" if left_behind else "for no reason"] += blind
        self.worst_recovery = max(self.worst_recovery, self._since_change)

    @property
    def taken(self) -> int:
        return sum(self.statuses.values())

    def close(self) -> bool:
        return self.source.close()


def children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


class Ends:
    """Stops once so many ticks are taken."""

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        yield

    def __init__(self, watched: Watched, ticks: int) -> None:
        self._watched, self._ticks = watched, ticks

    @property
    def requested(self) -> bool:
        return self._watched.taken >= self._ticks

    def wait(self, seconds: float) -> bool:
        if not self.requested:
            time.sleep(seconds)
        return self.requested


def resident_kb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def count_stored(database: Path) -> int:
    """Card-ticks of the healthy cards that are in the database as known."""
    from gua.store.database import open_reader

    with open_reader(database) as reader:
        return sum(
            row.verdict.state is not State.UNKNOWN
            for device in reader.devices()
            if device.uuid in HEALTHY
            for row in reader.card_ticks(device.id, (0, 2**50))
        )


def run(ticks: int, seed: int, deadline_s: float, folder: Path) -> None:
    scene, clock = folder / "scene", SystemClock()
    os.environ["LD_LIBRARY_PATH"] = str(build(Path(".cache/nvml_stub")).parent)
    os.environ["GUA_NVML_SCENE"] = str(scene)
    settings = load_settings(file=None, overrides={"nvml.deadline": ("deadline", f"{deadline_s:g}s")})
    faults = Faults(random.Random(seed), scene)
    faults.save()
    database = folder / "gua.db"
    watched = Watched(open_source(settings, clock, fake=False), faults)
    with open_recording(database, clock, fake=False, alone=True) as writer:
        writer.begin_run("daemon", INTERVAL_MS, settings.rule, "soak")
        before = (len(os.listdir("/proc/self/fd")), resident_kb())
        began_s, began_cpu_s = time.monotonic(), sum(os.times()[:4])
        ends, gate = Ends(watched, ticks), PauseGate(database, clock)
        run_loop(watched, writer, clock, INTERVAL_MS, ends, Notifier(None), gate, MadeUpBus())
        watched.close()
        gate.leave()
        cpu_s = sum(os.times()[:4]) - began_cpu_s
        after = (len(os.listdir("/proc/self/fd")), resident_kb())
    tell(watched, count_stored(database), time.monotonic() - began_s, cpu_s, before, after)


def tell(
    watched: Watched, stored: int, took_s: float, cpu_s: float, before: tuple[int, int], after: tuple[int, int]
) -> None:
    taken = watched.taken
    known = taken * len(HEALTHY) - sum(watched.lost.values())
    lines = {
        "seconds": f"{took_s:.0f}",
        "ticks taken": f"{taken}, of them {dict(watched.statuses)}",
        "faults": f"{dict(watched.faults.seen)}",
        "healthy card-ticks known": f"{known}, in the database {stored} (goal: the same)",
        "lost to what concerns all cards": str(dict(watched.lost)),
        "lost for no reason": f"{watched.lost['for no reason']} (goal: 0)",
        "ticks until whole after a fault": f"{watched.worst_recovery} (goal: at most 2)",
        "children at once": f"{watched.most_children} (goal: 1)",
        "open files before and after": f"{before[0]} and {after[0]} (goal: the same)",
        "resident kB before and after": f"{before[1]} and {after[1]}",
        "CPU per tick, with all restarts": f"{cpu_s / max(1, taken) * 1000:.1f} ms",
    }
    for name, text in lines.items():
        sys.stdout.write(f"{name:34} {text}\n")


if __name__ == "__main__":
    given = [*sys.argv[1:], *("7200", "1", f"{DEADLINE_S:g}")[len(sys.argv) - 1 :]]
    with tempfile.TemporaryDirectory() as directory:
        run(int(given[0]), int(given[1]), float(given[2]), Path(directory))
