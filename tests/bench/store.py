"""Speed and size of the store: a script to look at (`PYTHONPATH=agent python -m tests.bench.store [days]`), no test.

Eight cards at 30 s for `days` (default 30) in bulk, then one tick at a time with 20 cards, then reports.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gua.model import CardTick, Tick
from tests.agent.store.opened import report, writing
from tests.agent.store.ticks import HOUR, MONDAY, card, holder, tick

DAY = 24 * HOUR
USERS = ("ada", "ben", "chi", "dag", "eve", "fay")


def cards(count: int, rng: random.Random, n: int) -> tuple[CardTick, ...]:
    """Cards whose holder changes every two hours or so; a third of them is free."""
    made = []
    for index in range(count):
        epoch = n // 240 + index
        held = (holder(USERS[epoch % 6], pid=1000 + epoch, memory_mb=20_000 + 17 * index),) if epoch % 3 else ()
        util = rng.randrange(20, 100) if held and epoch % 2 else 0
        made.append(
            card(f"GPU-{index}", util, held, power_w=60 + 3.1 * util + rng.random(), index=index, pci=f"0:{index}")
        )
    return tuple(made)


def ticks(days: int, count: int) -> Iterator[Tick]:
    rng = random.Random(1)
    for n in range(days * 2880):
        yield tick(MONDAY + n * 30_000 + rng.randrange(20), *cards(count, rng, n))


def timed(label: str, work: Callable[[], object], per: int = 1) -> None:
    start = time.process_time()
    work()
    sys.stdout.write(f"{label:45} {(time.process_time() - start) * 1000 / per:9.3f} ms CPU\n")


def main(days: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gua.db"
        made = list(ticks(min(days, 3), 8))
        with writing(path) as writer:
            timed("bulk, per 8-card tick", lambda: writer.write_ticks(made), len(made))
            writer.write_ticks(one for n, one in enumerate(ticks(days, 8)) if n >= len(made))
        size = os.path.getsize(path)
        sys.stdout.write(f"{days} days x 8 cards x 30 s: {size / 1e6:.1f} MB\n")
        end = MONDAY + days * DAY
        for hours in (1, 47, 7 * 24, days * 24):
            timed(f"report of {hours} h", lambda hours=hours: report(path, end - hours * HOUR + 1, end - 7))
        rng = random.Random(2)
        many = [tick(end + n * 30_000, *cards(20, rng, n)) for n in range(500)]
        with writing(path) as writer:
            timed("write_tick, 20 cards", lambda: [writer.write_tick(one) for one in many], len(many))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
