"""Size and cost of exports and imports: `python -m tests.bench.export [days] [folder]`, with their goals; no test.

Eight cards at 30 s for `days` (30): exported, read back; the same as a database of gpu-usage-audit, imported.
A `folder` keeps the databases for the next time.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

from gua.export.stream import read_chunks
from tests.agent.legacy.old_databases import HOST, OldFile, OldProc, OldSample
from tests.agent.store.opened import writing
from tests.bench.store import cpu_ms, say, ticks


def command(out: Path, *words: str) -> tuple[float, float]:
    """CPU seconds and peak MB of one whole command, whose stdout goes to `out`."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with out.open("wb") as file:
        child = subprocess.Popen([sys.executable, "-m", "gua", *words], env=environ, stdout=file)
        _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"gua {' '.join(words)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def as_live(path: Path, days: int) -> None:
    """As a daemon leaves it, nearly: a revision for each hour and not for each tick, which is faster to make."""
    if path.exists():
        return
    made = ticks(days, 8)
    with writing(path) as writer:
        while hour := tuple(islice(made, 120)):
            writer.write_ticks(hour)


def exports(path: Path, days: int, folder: Path) -> None:
    out = folder / "export"
    for label, words, goal_mb in (
        ("export", (), 0.1 * days),
        ("export of sums and holds", ("--rollups-only",), 0.02 * days),
    ):
        cpu_s, peak_mb = command(out, "export", "--db", str(path), "--since-rev", "0", *words)
        say(f"{label} of {days} d", out.stat().st_size / 1e6, "MB", goal_mb)
        say(f"{label}, whole process", cpu_s, "s CPU", 0.5 * days)
        say(f"{label}, peak", peak_mb, "MB", 60)
        with out.open("rb") as file:
            found = [chunk.until_rev for chunk in read_chunks(file)]
        with out.open("rb") as file:
            spent = cpu_ms(lambda: sum(1 for _ in read_chunks(file)))
        say(f"{label}, read and verified, {len(found)} chunks", spent / 1000, "s CPU", 0.1 * days)
        say(f"{label}, largest chunk", max(_sizes(out)) / 1e6, "MB", 2)


def _sizes(out: Path) -> list[int]:
    return [len(part) for part in out.read_bytes().split(b"gua-export-chunk")]


def as_old(path: Path, days: int) -> None:
    """The same history as gpu-usage-audit would have recorded it."""
    if path.exists():
        return
    file = OldFile(path, "1.8.0")
    file.connection.execute("PRAGMA synchronous = OFF")
    commit, file.connection = file.connection.commit, _Lazy(file.connection)  # type: ignore[assignment]
    run = file.run()
    for number, tick in enumerate(ticks(days, 8)):
        file.tick(run, 30 * number, *map(_sample, tick.cards))
    commit()


class _Lazy:
    """A connection that commits later: 86,400 commits are slow."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def commit(self) -> None:
        pass

    def execute(self, *arguments: Any) -> Any:
        return self._connection.execute(*arguments)


def _sample(card: Any) -> OldSample:
    reading = card.reading
    procs = tuple(OldProc(h.identity.user, h.process.memory_mb, h.process.pid) for h in card.holders)
    state = "active" if reading.util_pct > 5 else "idle_held" if procs else "idle"
    return OldSample(reading.uuid, reading.util_pct, procs, None, state, reading.index)


def imports(old: Path, days: int, folder: Path) -> None:
    new = folder / "imported.db"
    for label, again in (("import", False), ("import once more", True)):
        if not again:
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{new}{suffix}")
        cpu_s, peak_mb = command(folder / "said", "import", str(old), "--db", str(new), "--from-host", HOST)
        say(f"{label} of {days} d, whole process", cpu_s, "s CPU", (0.5 if again else 5) * days)
        say(f"{label}, peak", peak_mb, "MB", 60)
    say("gpu-usage-audit's file", old.stat().st_size / 1e6, "MB", 12 * days)
    say("ours", new.stat().st_size / 1e6, "MB", days)


def main() -> None:
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(made)
        fine = folder / f"fine-{days}.db"
        as_live(fine, days)
        exports(fine, days, folder)
        as_old(folder / f"old-{days}.db", days)
        imports(folder / f"old-{days}.db", days, folder)


if __name__ == "__main__":
    main()
