"""The pusher beside the store, with a board that fails half of the time: `python -m tests.bench.push [ticks] [seed]`.

Ticks at 50 ms of the made-up host, each stored and then offered. Every second or so the board begins or ends to
misbehave, at random. Printed with their goals: ticks lost, how long an offer took, how old a state was when the board
took it, whether the last one arrived, and what memory grew by.
"""

from __future__ import annotations

import contextlib
import logging
import random
import sys
import tempfile
import time
from pathlib import Path

from gua.clock import SystemClock
from gua.cloud.client import BoardClient
from gua.cloud.config import CloudConfig
from gua.cloud.push import Pusher
from gua.cloud.sender import StateSender
from gua.cloud.token import Token
from gua.config import load_settings
from gua.model import DEFAULT_RULE
from gua.recording import open_recording, open_source
from gua.units import to_iso
from tests.board import Board, Misdeed, running_board

INTERVAL_S = 0.05
TOKEN = "gua_agent_bench_0123456789"
# A state waits for the next tick at most, and then for the board; the rest is this machine.
OLDEST_S = 5 * INTERVAL_S


class Watched(Board):
    """Notes how old each state was when it was taken."""

    def __init__(self) -> None:
        super().__init__()
        self.ages_s: list[float] = []
        self.begun_s: dict[str, float] = {}  # by what it calls itself: when its tick began, by the steady clock

    def answer(self, *request: object) -> tuple[int, object]:
        before = len(self.taken)
        answer = super().answer(*request)  # type: ignore[arg-type]
        if len(self.taken) > before:
            self.ages_s.append(time.monotonic() - self.begun_s[self.taken[-1]["observedAt"]])
            del self.taken[:-1]  # or it is the board whose memory grows
        return answer


def resident_kb() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def run(ticks: int, seed: int, database: Path, board: Watched) -> None:
    chance, clock = random.Random(seed), SystemClock()
    config = CloudConfig(board.url, "host-1", "node-1", Token(TOKEN), "gua_agent")
    sender = StateSender(config, BoardClient(board.url, 0.5, 1.0), logging.warning)
    pusher = Pusher(sender, clock, INTERVAL_S)
    source = open_source(load_settings(environ={}), clock, fake=True)
    offers_s: list[float] = []
    early_kb, last_ms, misdeed_until_s = 0, 0, 0.0
    with open_recording(database, clock, fake=True, alone=True) as writer:
        writer.begin_run("demo", round(INTERVAL_S * 1000), DEFAULT_RULE, "bench")
        due_s = time.monotonic()
        for number in range(ticks):
            if number == ticks - 1:
                board.misdeed = None  # it recovers before the last tick, which may have been refused for good else
            elif time.monotonic() >= misdeed_until_s:
                board.misdeed = chance.choice([None, chance.choice(list(Misdeed))])
                misdeed_until_s = time.monotonic() + chance.uniform(0.5, 1.5)
            last_ms = clock.now_ms()
            board.begun_s[to_iso(last_ms)] = time.monotonic()
            tick = source.collect(ts_ms=last_ms, cover_ms=50, known=writer.known_devices())
            writer.write_tick(tick)
            begin_s = time.perf_counter()
            pusher.offer(tick)
            offers_s.append(time.perf_counter() - begin_s)
            # What a refused token makes the daemon wait is not what is measured here
            pusher._not_before_s = min(pusher._not_before_s, clock.monotonic_s() + 1)
            if number == ticks // 4:
                early_kb = resident_kb()
            due_s += INTERVAL_S
            clock.sleep_s(due_s - time.monotonic())
    late_kb = resident_kb()
    begin_s = time.monotonic()
    pusher.close(60.0)
    waited_s = time.monotonic() - begin_s
    arrived = bool(board.taken) and board.taken[-1]["observedAt"] == to_iso(last_ms)
    ages_s = sorted(board.ages_s)
    print_figures(database, ticks, offers_s, ages_s, [arrived, len(board.violations)], waited_s, late_kb - early_kb)


def print_figures(
    database: Path,
    ticks: int,
    offers_s: list[float],
    ages_s: list[float],
    last: list[int],
    waited_s: float,
    grown_kb: int,
) -> None:
    import sqlite3

    with contextlib.closing(sqlite3.connect(database)) as connection:
        (stored,) = connection.execute("SELECT count(*) FROM tick").fetchone()
    lines = [
        f"ticks stored       {stored} of {ticks} (goal: all)",
        f"slowest offer      {max(offers_s) * 1000:.2f} ms (goal: under the interval, {INTERVAL_S * 1000:.0f} ms)",
        f"states taken       {len(ages_s)}, median age {ages_s[len(ages_s) // 2] * 1000:.0f} ms",
        f"oldest when taken  {ages_s[-1] * 1000:.0f} ms (goal: under {OLDEST_S * 1000:.0f} ms)",
        f"last one arrived   {bool(last[0])}, {waited_s * 1000:.0f} ms after the end (goal: yes)",
        f"against contract   {last[1]} (goal: 0)",
        f"memory grown       {grown_kb} kB over three quarters of it (goal: under 2000)",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    words = [int(word) for word in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder, running_board(Watched()) as running:
        running.agents[TOKEN] = "host-1"
        run(*(words + [2000, 1][len(words) :]), Path(folder) / "gua.db", running)  # type: ignore[arg-type]
