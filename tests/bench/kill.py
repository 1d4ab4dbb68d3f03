"""Kills a writer in mid-write, again and again, and looks at what is left: `python -m tests.bench.kill [200]`.

Each life goes on where the one before it was killed. After each: is the file whole, and is every tick there that its
writer said was stored? Only the running one may be lost.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from gua.coverage import SLOT_MS
from gua.store.database import open_reader
from tests.agent.store.opened import writing
from tests.agent.store.ticks import MONDAY, card, holder, tick

CARDS = 8
# A killed process loses nothing that it wrote, to disk or not: there the looks in between wait for no disk.
MEMORY = Path("/dev/shm")
# A tick is stored in a few milliseconds: killed at any moment of it.
LATEST_S = 0.004


@dataclass(frozen=True)
class Left:
    """What one killed life left. said: number of the last tick its writer called stored. ticks: how many there are.

    sound: the file is whole, every tick has all its samples, and roll-ups say what raw ticks say.
    """

    said: int
    ticks: int
    sound: bool

    @property
    def right(self) -> bool:
        return self.sound and self.said + 1 <= self.ticks <= self.said + 2


def write_on(path: Path, first: int, say: int) -> None:
    """Store tick after tick from number `first` on, and say each number once it is stored."""
    with writing(path) as writer:
        for n in range(first, first + 1_000_000):
            cards = [card(f"GPU-{i}", 0, (holder(pid=n // 7),), used_mb=5_000 + n % 13) for i in range(CARDS)]
            writer.write_tick(tick(MONDAY + n * 1000, *cards, cover_ms=1000))
            os.write(say, f"{n}\n".encode())


def live_and_die(path: Path, first: int, after: int, late_s: float) -> Left:
    """Write from tick `first` on, be killed `late_s` after `after` ticks were said to be stored, and look."""
    hear, say = os.pipe()
    writer = os.fork()  # a Python started anew for each life would be most of the time
    if writer == 0:
        try:
            write_on(path, first, say)
        finally:
            os._exit(1)
    os.close(say)
    with open(hear, encoding="ascii") as lines:
        said = [int(lines.readline()) for _ in range(after)]
        time.sleep(late_s)
        os.kill(writer, signal.SIGKILL)
        said += map(int, lines.read().split())
    os.waitpid(writer, 0)
    return look(path, said[-1], first)


def look(path: Path, said: int, first: int) -> Left:
    """What is there after the tick `said`; sums are looked at from the slot of tick `first` on."""
    connection = sqlite3.connect(path)
    whole = connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    (ticks,) = connection.execute("SELECT count(*) FROM tick").fetchone()
    (samples,) = connection.execute("SELECT count(*) FROM gpu_sample").fetchone()
    connection.close()
    slots = (MONDAY + first * 1000) // SLOT_MS, (MONDAY + (ticks + 1) * 1000) // SLOT_MS + 1
    with open_reader(path) as reader:
        raw = reader.sums((0, 0), [(slots[0] * SLOT_MS, slots[1] * SLOT_MS)])
        summed = reader.sums(slots, [])
    alike = raw.cards == summed.cards and raw.users == summed.users and raw.slots == summed.slots
    return Left(said, ticks, whole and alike and samples == CARDS * ticks)


def kill_often(path: Path, kills: int, rng: random.Random) -> list[Left]:
    found: list[Left] = []
    for _ in range(kills):
        first = found[-1].ticks if found else 0
        found.append(live_and_die(path, first, rng.randrange(1, 40), rng.uniform(0, LATEST_S)))
    found.append(look(path, found[-1].ticks - 1, 0))  # and all of it in the end
    return found


def main(kills: int) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        found = kill_often(Path(folder) / "gua.db", kills, random.Random(3))
    wrong = [one for one in found if not one.right]
    sys.stdout.write(f"{kills} kills, {found[-1].ticks} ticks: {len(wrong)} wrong (goal 0)\n")
    for one in wrong:
        sys.stdout.write(f"  {one}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
