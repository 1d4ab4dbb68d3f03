"""Speed and size of the store: `python -m tests.bench.store [days] [folder]`, figures with their goals; no test.

Eight cards at 30 s for `days` (30), a year in coarse ticks (as many roll-ups as fine ones make), then the commands as
whole processes, then ticks of 20 cards one at a time. A `folder` keeps the databases for the next time.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from gua.model import DEFAULT_RULE, CardTick, Tick, UtilSource
from gua.store.database import open_reader
from gua.store.retention import Retention
from gua.units import to_iso
from tests.agent.store.opened import SetClock, writing
from tests.agent.store.ticks import HOUR, MONDAY, card, holder, tick

DAY = 24 * HOUR
USERS = ("ada", "ben", "chi", "dag", "eve", "fay")


def cards(count: int, rng: random.Random, n: int, a_day: int = 2880) -> tuple[CardTick, ...]:
    """Cards whose holder changes every two hours or so; a third of them is free."""
    made = []
    for index in range(count):
        epoch = n * 12 // a_day + index
        held = (holder(USERS[epoch % 6], pid=1000 + epoch, memory_mb=20_000 + 17 * index),) if epoch % 3 else ()
        util = rng.randrange(20, 100) if held and epoch % 2 else 0
        watts = 60 + 3.1 * util + rng.random()
        one = card(f"GPU-{index}", util, held, power_w=watts, index=index, pci=f"0:{index}")
        energy_mj = round(n * 30_000 * watts) if util else n * 1_800_000
        reading = replace(
            one.reading,
            util_max_pct=min(100, util + 9),
            util_source=UtilSource.SAMPLES,
            temperature_c=35 + util // 2,
            energy_mj=energy_mj,
        )
        made.append(replace(one, reading=reading))
    return tuple(made)


def ticks(days: int, count: int, interval_ms: int = 30_000) -> Iterator[Tick]:
    rng = random.Random(1)
    for n in range(days * DAY // interval_ms):
        made = cards(count, rng, n, DAY // interval_ms)
        yield tick(MONDAY + n * interval_ms + rng.randrange(20), *made, cover_ms=interval_ms)


def say(label: str, value: float, unit: str, goal: float) -> None:
    verdict = "ok" if value <= goal else "MISSED"
    sys.stdout.write(f"{label:44} {value:9.3f} {unit:8} goal {goal:g}  {verdict}\n")
    sys.stdout.flush()


def cpu_ms(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def process(*arguments: str) -> tuple[float, float]:
    """CPU seconds and peak MB of the whole command, from bytecode as an installed one runs: the least of ten."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": ""}
    found = []
    for _ in range(10):
        child = subprocess.Popen(
            [sys.executable, "-m", "gua", *arguments], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        said = child.stderr.read() if child.stderr else b""
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            raise SystemExit(f"gua {' '.join(arguments)} failed: {said.decode()}")
        found.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
    return min(found)


def build(path: Path, made: Iterator[Tick]) -> None:
    if not path.exists():
        with writing(path) as writer:
            writer.write_ticks(made)


def commands(fine: Path, year: Path, days: int) -> None:
    end, year_end = MONDAY + days * DAY - 1, MONDAY + 365 * DAY - 1
    for label, path, until_ms, since_ms, goal in (
        ("report of 1 h", fine, end, end - HOUR, 0.20),
        (f"report of {days} d", fine, end, end - days * DAY, 0.30),
        ("report of 365 d", year, year_end, year_end - 365 * DAY, 0.60),
    ):
        window = ("--since", to_iso(since_ms), "--until", to_iso(until_ms))
        cpu_s, peak_mb = process("report", "--db", str(path), *window)
        say(f"{label}, whole process", cpu_s, "s CPU", goal)
        say(f"{label}, peak", peak_mb, "MB", 45)
    cpu_s, _ = process("version")
    say("version, whole process", cpu_s, "s CPU", 0.06)


def judged_again(fine: Path, days: int) -> None:
    rules = [replace(DEFAULT_RULE, active_util_pct=util, held_mb=mb) for util in (5, 10, 20) for mb in (0, 100, 500)]
    window = (MONDAY, MONDAY + days * DAY)
    with open_reader(fine) as reader:
        say("nine headlines from raw ticks", cpu_ms(lambda: reader.verdict_ms(window, rules)) / 1000, "s CPU", 2)
        say("all sums under another rule", cpu_ms(lambda: reader.rejudge(window, rules[0])) / 1000, "s CPU", 5)


def singly(folder: Path) -> None:
    rng, clock = random.Random(2), SetClock()
    path = folder / "single.db"
    path.unlink(missing_ok=True)
    with writing(path, clock=clock, retention=Retention(DAY, 2 * DAY)) as writer:
        writer.write_ticks(tick(MONDAY - 4 * DAY + n * 60_000, *cards(20, rng, n)) for n in range(4 * 1440))
        times = []
        for n in range(1000):
            clock.ms = MONDAY + n * 30_000
            one = tick(clock.ms, *cards(20, rng, n))
            times.append(cpu_ms(lambda one=one: writer.write_tick(one)))  # type: ignore[misc]
    times.sort()
    say("write_tick, 20 cards, removing old ones: mean", sum(times) / len(times), "ms CPU", 3)
    say("write_tick, 20 cards, removing old ones: 99 %", times[990], "ms CPU", 8)


def main(days: int, folder: Path) -> None:
    fine, year = folder / f"fine-{days}.db", folder / "year.db"
    build(fine, ticks(days, 8))
    build(year, ticks(365, 8, 450_000))
    say(f"{days} days x 8 cards x 30 s, on disk", os.path.getsize(fine) / 1e6, "MB", 24 * days / 30)
    commands(fine, year, days)
    judged_again(fine, days)
    singly(folder)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"(this script's own peak: {peak_mb:.0f} MB)\n")


if __name__ == "__main__":
    asked_days = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    if len(sys.argv) > 2:
        main(asked_days, Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as made_folder:
            main(asked_days, Path(made_folder))
