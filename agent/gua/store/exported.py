"""Which rows an export is made of, and in which revisions they were last written.

Rows go by the revision of their last change, so that whoever keeps all of a range of revisions and puts them in by
their keys, in order, has what the database has. Samples and fragments have their tick's revision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from gua.store.packing import POWER_AT, SOURCE_AT, TEMPERATURE_AT, UTIL_AT, UTIL_MAX_AT, VERDICT_MASK
from gua.store.sample_id import DEVICE_BITS
from gua.store.session import Session
from gua.store.version import SCHEMA_VERSION

_BY_TICK = "tick WHERE rev > ? AND rev <= ?"


@dataclass(frozen=True)
class Table:
    """One table of an export. query: takes (after_rev, until_rev). key: names a row. raw: it is about single ticks.

    Rows are read by key, which is how they lie there. together: columns to sort a chunk's rows by, so that rows with
    much in common stand together, which compresses best.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    query: str
    raw: bool = False
    together: tuple[str, ...] = ()


def _plain(name: str, columns: str, key: str, *, together: str = "", where: str = "", raw: bool = False) -> Table:
    names = tuple(columns.split())
    query = f"SELECT {', '.join(names)} FROM {name} WHERE rev > ? AND rev <= ?{where}"
    return Table(name, names, tuple(key.split()), query, raw, tuple(together.split()))


# Readings by themselves: each column compresses far better than the packed integer. Zeros and NULLs as in packing.py.
_READINGS = {
    "verdict": f"readings & {VERDICT_MASK}",
    "util_source": f"nullif(readings >> {SOURCE_AT} & 7, 0) - 1",
    "util_pct": f"nullif(readings >> {UTIL_AT} & 127, 127)",
    "util_max_pct": f"nullif(readings >> {UTIL_MAX_AT} & 127, 127)",
    "temperature_c": f"nullif(readings >> {TEMPERATURE_AT} & 255, 255)",
    "power_dw": f"nullif(readings >> {POWER_AT}, 0) - 1",
}
_SAMPLES = (
    f"FROM tick JOIN sample ON sample.id BETWEEN tick.id << {DEVICE_BITS}"
    f" AND (tick.id << {DEVICE_BITS}) + {(1 << DEVICE_BITS) - 1} WHERE tick.rev > ? AND tick.rev <= ?"
)
_OCCUPANCY = ("id", "first_tick", "rule", "flags", "memory_used_mb", "holders", "held_mb", "unattributed_mb")

TABLES: tuple[Table, ...] = (
    Table(
        "boot",
        ("id", "boot_id"),
        ("id",),
        "WITH range(a, b) AS (SELECT ?, ?) SELECT id, boot_id FROM boot WHERE"
        " id IN (SELECT boot FROM run, range WHERE rev > a AND rev <= b)"
        " OR id IN (SELECT boot FROM process, range WHERE rev > a AND rev <= b)",
    ),
    _plain("rule", "id active_util_pct held_mb unattributed_mb unattributed_v1_mb long_idle_s rev", "id"),
    _plain(
        "run",
        "id store boot rule kind hostname interval_ms agent_version driver_version started_ms ended_ms rev",
        "id",
    ),
    _plain(
        "device",
        "id uuid card_index pci_bus_id name memory_total_mb mig_parent_uuid mig_profile first_seen_ms retired_at_ms"
        " rev",
        "id",
    ),
    _plain("pause", "id run from_ms until_ms rev", "id"),
    _plain("user", "id name source uid rev", "id"),
    _plain(
        "process",
        "id boot pid start_ticks user name source owner_uid login_uid container_id slurm_job mount_hint rev",
        "id",
    ),
    _plain(
        "hold",
        "id process device type is_open first_tick last_tick since_ms until_ms memory_mb active_ms idle_held_ms"
        " truly_idle_ms unknown_ms long_idle_ms sm_util_ms sm_util_pct_ms rev",
        "id",
    ),
    # Short stretches come and go, and nobody needs them but the writer.
    _plain(
        "idle_stretch",
        "id device rule is_open is_long first_tick last_tick start_ms end_ms rev",
        "id",
        where=" AND is_long",
    ),
    _plain(
        "card_slot",
        "device verdict rule slot covered_ms samples energy_mj energy_ms rev",
        "slot device rule verdict",
        together="device verdict rule slot",
    ),
    _plain(
        "user_slot",
        "user device state rule slot card_ms share_ms shared_ms long_idle_ms energy_mj energy_ms samples rev",
        "slot user device rule state",
        together="user device state rule slot",
    ),
    _plain("tick_slot", "status cover_ms slot ticks rev", "slot status cover_ms", together="status cover_ms slot"),
    _plain("tick", "id ts_ms run status cover_ms cover_from cover_until fault rev", "id", raw=True),
    Table(
        "tick_fragment",
        ("tick", "from_ms", "until_ms"),
        ("tick", "from_ms"),
        f"SELECT tick, from_ms, until_ms FROM tick_fragment WHERE tick IN (SELECT id FROM {_BY_TICK})",
        raw=True,
    ),
    Table(
        "occupancy",
        _OCCUPANCY,
        ("id",),
        f"SELECT {', '.join(_OCCUPANCY)} FROM occupancy WHERE id IN (SELECT sample.occupancy {_SAMPLES})",
        raw=True,
    ),
    Table(
        "sample",
        ("id", "device", "occupancy", *_READINGS, "energy_j"),
        ("id",),
        f"SELECT sample.id AS id, sample.id & {(1 << DEVICE_BITS) - 1} AS device, occupancy,"
        f" {', '.join(f'{text} AS {name}' for name, text in _READINGS.items())}, energy_j {_SAMPLES}",
        raw=True,
        together=("device", "id"),
    ),
    _plain("hold_memory", "hold tick memory_mb rev", "hold tick", raw=True),
)

_COUNTED = (
    "rule",
    "run",
    "device",
    "pause",
    "user",
    "process",
    "hold",
    "idle_stretch",
    "card_slot",
    "user_slot",
    "tick_slot",
)


class Exported:
    """The rows to export, as they stand now."""

    def __init__(self, session: Session, *, rollups_only: bool) -> None:
        self._session = session
        self.tables = tuple(table for table in TABLES if not (table.raw and rollups_only))
        self._raw = not rollups_only

    def head(self) -> dict[str, Any]:
        """The host and how far its history reaches: part of the header of an export. Revisions, Unix milliseconds."""
        stores = self._session.rows(
            "SELECT id, store_id, machine_id, created_ms, raw_since_ms, users_since_slot FROM store ORDER BY id"
        )
        names = ("id", "store_id", "machine_id", "created_ms", "raw_since_ms", "users_since_slot")
        raw_since_ms = max((row[4] for row in stores if row[4] is not None), default=None)
        oldest = self._session.rows("SELECT min(rev) FROM tick")[0][0]
        return {
            "database_schema": SCHEMA_VERSION,
            "stores": [dict(zip(names, row)) for row in stores],
            "newest_rev": self._session.rows("SELECT coalesce(max(rev), 0) FROM store")[0][0],
            "oldest_whole_rev": 1 if raw_since_ms is None else oldest,
            "raw_since_ms": raw_since_ms,
            "users_since_slot": max((row[5] for row in stores), default=0),
        }

    def rows_by_rev(self, after_rev: int, until_rev: int) -> Iterator[tuple[int, int]]:
        """(revision, about how many rows are in it), ascending."""
        cards = int(self._session.rows("SELECT count(*) FROM device")[0][0])
        parts = [f"SELECT rev, 1 AS n FROM {table} WHERE rev > :a AND rev <= :b" for table in _COUNTED]
        if self._raw:
            parts.append(f"SELECT rev, {cards + 1} FROM tick WHERE rev > :a AND rev <= :b")
            parts.append("SELECT rev, 1 FROM hold_memory WHERE rev > :a AND rev <= :b")
        yield from self._session.connection.execute(
            f"SELECT rev, sum(n) FROM ({' UNION ALL '.join(parts)}) GROUP BY rev ORDER BY rev",
            {"a": after_rev, "b": until_rev},
        )

    def rows(self, table: Table, revs: tuple[int, int], beyond: Optional[Sequence[Any]], limit: int) -> list[Any]:
        """Rows of a table last written in these revisions (the first one excluded), whose key lies beyond this one."""
        key = ", ".join(table.key)
        marks = ", ".join("?" * len(table.key))
        where = "" if beyond is None else f" WHERE ({key}) > ({marks})"
        query = f"SELECT {', '.join(table.columns)} FROM ({table.query}){where} ORDER BY {key} LIMIT ?"
        return self._session.rows(query, (*revs, *(beyond or ()), limit))
