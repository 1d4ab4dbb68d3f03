"""Version 1 to 2: samples packed, rules and sources kept by card-tick, pauses, mount hints, use of multiprocessors."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from gua.store.packing import GPU_SAMPLE_VIEW, pack_readings
from gua.store.sample_id import DEVICE_BITS
from gua.store.samples import INSERT_OCCUPANCY, INSERT_SAMPLE, Occupancies

_TABLES = """
CREATE TABLE "sample" ("id" INTEGER NOT NULL PRIMARY KEY, "occupancy" INTEGER NOT NULL, "readings" INTEGER NOT NULL,
  "energy_j" INTEGER);
CREATE TABLE "occupancy" ("id" INTEGER NOT NULL PRIMARY KEY, "first_tick" INTEGER NOT NULL, "rule" INTEGER NOT NULL,
  "flags" INTEGER NOT NULL, "memory_used_mb" INTEGER, "holders" INTEGER, "held_mb" INTEGER NOT NULL,
  "unattributed_mb" INTEGER);
CREATE INDEX "occupancy_first_tick" ON "occupancy" ("first_tick");
CREATE TABLE "pause" ("id" INTEGER NOT NULL PRIMARY KEY, "run" INTEGER NOT NULL, "from_ms" INTEGER NOT NULL,
  "until_ms" INTEGER, "rev" INTEGER NOT NULL);
ALTER TABLE "process" ADD COLUMN "mount_hint" TEXT;
ALTER TABLE "hold" ADD COLUMN "sm_util_ms" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "hold" ADD COLUMN "sm_util_pct_ms" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "store" ADD COLUMN "users_since_slot" INTEGER NOT NULL DEFAULT 0;
CREATE INDEX "process_user" ON "process" ("user");
CREATE INDEX "hold_process" ON "hold" ("process")
"""

_OLD = (
    "SELECT gpu_sample.id, verdict, flags, util_pct, memory_used_mb, temperature_c, power_dw, energy_j, holders,"
    f" held_mb, unattributed_mb, run.rule FROM gpu_sample JOIN tick ON tick.id = gpu_sample.id >> {DEVICE_BITS}"
    " JOIN run ON run.id = tick.run ORDER BY gpu_sample.id"
)

# Occupancies that may wait in memory.
_BATCH = 10_000


def pack_samples(connection: sqlite3.Connection) -> None:
    """Rewrite a version-1 database. What it never knew stays unknown."""
    for statement in _TABLES.split(";"):  # executescript would commit first
        connection.execute(statement)
    occupancies = Occupancies()
    connection.executemany(INSERT_SAMPLE, _packed(connection, connection.execute(_OLD), occupancies))
    connection.executemany(INSERT_OCCUPANCY, occupancies.new)
    connection.execute("DROP TABLE gpu_sample")
    connection.execute(GPU_SAMPLE_VIEW)


def _packed(
    connection: sqlite3.Connection, rows: Iterable[Any], occupancies: Occupancies
) -> Iterator[tuple[int, int, int, Any]]:
    for sample, verdict, flags, util, used, celsius, power, energy, holders, held, unattributed, rule in rows:
        tick, device = sample >> DEVICE_BITS, sample & (1 << DEVICE_BITS) - 1
        occupancy = occupancies.of(device, tick, (rule, flags, used, holders, held, unattributed))
        if len(occupancies.new) >= _BATCH:
            connection.executemany(INSERT_OCCUPANCY, occupancies.new)
            occupancies.new.clear()
        readings = pack_readings(
            verdict,
            util_source=None,
            util_pct=util,
            util_max_pct=None,
            temperature_c=celsius,
            power_dw=power,
        )
        yield sample, occupancy, readings, energy
