"""Databases as each version of gpu-usage-audit left them, made by our own SQL from its columns."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Optional

from tests.agent.store.ticks import MONDAY

HOST = "host-a"

_HOST = "hostname TEXT NOT NULL, env_kind TEXT NOT NULL, driver_version TEXT, first_seen DATETIME, last_seen DATETIME"
_GPU_100 = "ts DATETIME NOT NULL, gpu_uuid TEXT NOT NULL, util_pct INTEGER NOT NULL"
_PROC_100 = (
    "ts DATETIME NOT NULL, gpu_uuid TEXT NOT NULL, pid INTEGER NOT NULL, mem_used_mb INTEGER NOT NULL,"
    " loginuid_user TEXT"
)
_RUN = "id INTEGER PRIMARY KEY AUTOINCREMENT, started_at DATETIME NOT NULL, interval_seconds REAL NOT NULL"
_DEVICE = "gpu_uuid TEXT NOT NULL, name TEXT NOT NULL, memory_total_mb INTEGER NOT NULL, first_seen, last_seen"
_MORE = ", gpu_index INTEGER, memory_used_mb INTEGER, temperature_c INTEGER, power_w INTEGER"
_PROC_140 = (
    "ts DATETIME NOT NULL, gpu_uuid TEXT NOT NULL, pid INTEGER NOT NULL, mem_used_mb INTEGER, loginuid_user TEXT,"
    " run_id INTEGER, gpu_index INTEGER, process_name TEXT, process_type TEXT NOT NULL DEFAULT 'compute'"
)

# version -> table -> columns
SCHEMAS: dict[str, dict[str, str]] = {
    "1.0.0": {"host": _HOST, "gpu_sample": _GPU_100, "proc_sample": _PROC_100},
    "1.0.3": {
        "host": _HOST,
        "daemon_run": _RUN,
        "gpu_sample": f"{_GPU_100}, run_id INTEGER",
        "proc_sample": f"{_PROC_100}, run_id INTEGER",
    },
    "1.3.0": {
        "host": _HOST,
        "daemon_run": _RUN,
        "gpu_device": _DEVICE,
        "gpu_sample": f"{_GPU_100}, run_id INTEGER{_MORE}",
        "proc_sample": f"{_PROC_100}, run_id INTEGER, gpu_index INTEGER, process_name TEXT",
    },
    "1.4.0": {
        "host": _HOST,
        "daemon_run": _RUN,
        "gpu_device": _DEVICE,
        "gpu_sample": f"{_GPU_100}, run_id INTEGER, usage_state TEXT{_MORE}",
        "proc_sample": _PROC_140,
    },
    "1.8.0": {
        "host": _HOST,
        "daemon_run": _RUN,
        "gpu_device": _DEVICE,
        "gpu_sample": f"{_GPU_100}, run_id INTEGER, usage_state TEXT{_MORE}",
        "proc_sample": f"{_PROC_140}, owner_user TEXT",
    },
}


@dataclass(frozen=True)
class OldProc:
    user: Optional[str] = "ada"
    memory_mb: Optional[int] = 4_000
    pid: int = 100
    type: str = "compute"
    owner: Optional[str] = None


@dataclass(frozen=True)
class OldSample:
    """state None where the version keeps one: its list of processes failed."""

    uuid: str = "GPU-a"
    util_pct: int = 0
    procs: tuple[OldProc, ...] = ()
    used_mb: Optional[int] = None
    state: Optional[str] = "idle"
    index: int = 0


@dataclass
class OldFile:
    """An open database of one version, written like its daemon did: one transaction a tick."""

    path: Path
    version: str
    connection: sqlite3.Connection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = sqlite3.connect(self.path)
        self.connection.execute("PRAGMA journal_mode = WAL")
        for table, columns in SCHEMAS[self.version].items():
            self.connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        for table in ("gpu_sample", "proc_sample"):
            self.connection.execute(f"CREATE INDEX IF NOT EXISTS idx_{table}_uuid_ts ON {table}(gpu_uuid, ts)")
        if not self.connection.execute("SELECT 1 FROM host").fetchall():
            self._insert(
                "host", hostname=HOST, env_kind="bare", driver_version="550.1", first_seen=at(0), last_seen=at(0)
            )
        self.connection.commit()

    def run(self, interval_s: float = 30, start_s: float = 0) -> Optional[int]:
        """A daemon starts: its id, None where the version keeps no runs."""
        if "daemon_run" not in SCHEMAS[self.version]:
            return None
        return self._insert("daemon_run", started_at=at(start_s), interval_seconds=interval_s)

    def tick(self, run: Optional[int], second: float, *samples: OldSample) -> None:
        for sample in samples:
            self._device(sample, second)
            self._insert(
                "gpu_sample",
                ts=at(second),
                gpu_uuid=sample.uuid,
                util_pct=sample.util_pct,
                run_id=run,
                gpu_index=sample.index,
                memory_used_mb=sum(p.memory_mb or 0 for p in sample.procs)
                if sample.used_mb is None
                else sample.used_mb,
                temperature_c=40,
                power_w=100,
                usage_state=sample.state,
            )
            for proc in sample.procs:
                self._insert(
                    "proc_sample",
                    ts=at(second),
                    gpu_uuid=sample.uuid,
                    pid=proc.pid,
                    mem_used_mb=proc.memory_mb,
                    loginuid_user=proc.user,
                    owner_user=proc.owner,
                    run_id=run,
                    gpu_index=sample.index,
                    process_name="python",
                    process_type=proc.type,
                )
        self.connection.commit()

    def close(self) -> Path:
        self.connection.close()
        return self.path

    def _device(self, sample: OldSample, second: float) -> None:
        known = "gpu_device" in SCHEMAS[self.version]
        if (
            known
            and not self.connection.execute("SELECT 1 FROM gpu_device WHERE gpu_uuid = ?", (sample.uuid,)).fetchall()
        ):
            times = {"first_seen": at(second), "last_seen": at(second)}
            self._insert("gpu_device", gpu_uuid=sample.uuid, name="NVIDIA A100", memory_total_mb=81_920, **times)

    def _insert(self, table: str, **values: Any) -> int:
        """Insert what this version has columns for."""
        there = {row[1] for row in self.connection.execute(f"PRAGMA table_info({table})")}
        kept = {name: value for name, value in values.items() if name in there}
        marks = ", ".join("?" * len(kept))
        cursor = self.connection.execute(
            f"INSERT INTO {table} ({', '.join(kept)}) VALUES ({marks})", tuple(kept.values())
        )
        return int(cursor.lastrowid or 0)


def at(second: float) -> str:
    """That many seconds after Monday, as that tool writes it."""
    return (datetime.fromtimestamp(MONDAY / 1000, timezone.utc) + timedelta(seconds=second)).isoformat()


def old_database(path: Path, version: str, ticks: Iterable[Sequence[OldSample]], interval_s: float = 30) -> Path:
    """One run with these ticks, an interval apart, from Monday on."""
    file = OldFile(path, version)
    run = file.run(interval_s)
    for number, samples in enumerate(ticks):
        file.tick(run, number * interval_s, *samples)
    return file.close()
