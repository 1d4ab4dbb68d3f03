"""The same history in gpu-usage-audit 1.8.0's database, and what its report costs beside ours, in one run:

    python -m tests.bench.predecessor COMMAND [days]

COMMAND: `gpu-usage-audit` as installed (it needs Python 3.12), for example in a virtual environment of its own.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gua.clock import SystemClock
from gua.model import Tick
from tests.agent.store.opened import writing
from tests.bench.store import MONDAY, ticks


def at(ts_ms: int) -> str:
    return datetime.fromtimestamp(ts_ms / 1000, timezone.utc).isoformat(timespec="microseconds")


def fill(path: Path, made: Iterator[Tick], shift_ms: int) -> None:
    connection = sqlite3.connect(path)
    for table in ("host", "daemon_run", "gpu_sample", "proc_sample", "gpu_device"):
        connection.execute(f"DELETE FROM {table}")
    first = last = ""
    for tick in made:
        last = at(tick.ts_ms + shift_ms)
        if not first:
            first = last
            connection.execute("INSERT INTO daemon_run VALUES (1, ?, 30.0)", (first,))
        connection.executemany(
            "INSERT INTO gpu_sample VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?)", [_sample(last, card) for card in tick.cards]
        )
        connection.executemany(
            "INSERT INTO proc_sample VALUES (?, ?, ?, ?, NULL, ?, 1, ?, ?, 'compute')",
            [row for card in tick.cards for row in _processes(last, card)],
        )
    uuids = [row[0] for row in connection.execute("SELECT DISTINCT gpu_uuid FROM gpu_sample")]
    connection.executemany(
        "INSERT INTO gpu_device VALUES (?, 'NVIDIA A100', 81920, ?, ?)", [(uuid, first, last) for uuid in uuids]
    )
    connection.execute("INSERT INTO host VALUES ('host-a', 'bare', '550.90.07', ?, ?)", (first, last))
    connection.commit()
    connection.close()


def _sample(ts: str, card: Any) -> tuple[Any, ...]:
    reading, state = card.reading, card.verdict.state.value.replace("-", "_")
    figures = (reading.memory_used_mb, reading.temperature_c, round(reading.power_w))
    return (ts, reading.uuid, reading.util_pct, state, reading.index, *figures)


def _processes(ts: str, card: Any) -> list[tuple[Any, ...]]:
    return [
        (ts, card.reading.uuid, one.process.pid, one.process.memory_mb, one.identity.user, card.reading.index, "python")
        for one in card.holders
    ]


def cost(*command: str) -> tuple[float, float]:
    """CPU seconds and peak MB of a command."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)} if "-m" in command else None
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environ)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(command: str, days: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder) / "old.db", Path(folder) / "new.db"
        demo = (command, "demo", "--db", str(old), "--ticks", "1", "--interval", "200ms")
        subprocess.run(demo, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # makes its tables
        shift_ms = SystemClock().now_ms() - MONDAY - days * 86_400_000
        fill(old, ticks(days, 8), shift_ms)
        with writing(new) as writer:
            writer.write_ticks(ticks(days, 8))
        since, until = at(MONDAY), at(MONDAY + days * 86_400_000 - 1)
        theirs = cost(command, "report", "--db", str(old), "--since", f"{days}d")
        ours = cost(sys.executable, "-m", "gua", "report", "--db", str(new), "--since", since, "--until", until)
        sizes = [os.path.getsize(path) / 1e6 for path in (old, new)]
    for label, first, second in (
        ("on disk, MB", *sizes),
        (f"report of {days} d, CPU s", theirs[0], ours[0]),
        ("peak, MB", theirs[1], ours[1]),
    ):
        sys.stdout.write(f"{label:24} theirs {first:9.2f}  ours {second:8.2f}  ratio 1/{first / second:.0f}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30)
