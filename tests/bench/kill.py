"""Kills a writer in mid-write, again and again, and looks at what is left: `python -m tests.bench.kill [200]`.

Each life goes on where the one before it was killed. After each: is the file whole, and is every tick there that its
writer said was stored? Only the running one may be lost.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gua.store.database import open_reader
from tests.agent.store.ticks import MONDAY

CARDS = 8
WRITER = """
import sys
from pathlib import Path
from tests.agent.store.opened import writing
from tests.agent.store.ticks import MONDAY, card, holder, tick
first = int(sys.argv[2])
with writing(Path(sys.argv[1])) as writer:
    for n in range(first, first + 1_000_000):
        held = (holder(pid=n // 7),)
        cards = [card(f"GPU-{i}", 0, held, used_mb=5_000 + n % 13) for i in range(int(sys.argv[3]))]
        writer.write_tick(tick(MONDAY + n * 1000, *cards, cover_ms=1000))
        sys.stdout.write(f"{n}\\n")
        sys.stdout.flush()
"""


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


def live_and_die(path: Path, first: int, after: int) -> Left:
    """Write from tick `first` on, be killed once `after` ticks were said to be stored, and look."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first), str(CARDS)], env=environ, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    for _ in range(after):
        said = int(writer.stdout.readline())
    writer.kill()
    rest = writer.stdout.read().split()
    writer.stdout.close()
    writer.wait()
    return look(path, int(rest[-1]) if rest else said)


def look(path: Path, said: int) -> Left:
    connection = sqlite3.connect(path)
    whole = connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    (ticks,) = connection.execute("SELECT count(*) FROM tick").fetchone()
    (samples,) = connection.execute("SELECT count(*) FROM gpu_sample").fetchone()
    connection.close()
    until_ms = MONDAY + (ticks + 1) * 1000
    with open_reader(path) as reader:
        raw, slots = reader.sums((0, 0), [(MONDAY, until_ms)]), reader.sums((0, until_ms // 900_000 + 1), [])
    alike = raw.cards == slots.cards and raw.users == slots.users and raw.slots == slots.slots
    return Left(said, ticks, whole and alike and samples == CARDS * ticks)


def kill_often(path: Path, kills: int, rng: random.Random) -> list[Left]:
    found: list[Left] = []
    for _ in range(kills):
        first = found[-1].ticks if found else 0
        found.append(live_and_die(path, first, rng.randrange(1, 40)))
    return found


def main(kills: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = kill_often(Path(folder) / "gua.db", kills, random.Random(3))
    wrong = [one for one in found if not one.right]
    sys.stdout.write(f"{kills} kills, {found[-1].ticks} ticks: {len(wrong)} wrong (goal 0)\n")
    for one in wrong:
        sys.stdout.write(f"  {one}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
