"""What the writer's helpers share during one transaction and one tick."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, TypeVar, cast

from peewee import PeeweeException, SqliteDatabase

Result = TypeVar("Result")

# How long to wait for another writer's transaction (a sync-once beside the daemon takes milliseconds), in slices,
# because SQLite's own wait hears of no signal until it is over.
BUSY_TIMEOUT_MS = 5_000
BUSY_SLICE_MS = 500


def connection_of(database: SqliteDatabase) -> sqlite3.Connection:
    """peewee's own connection, opened when it was not (its stubs leave this method untyped)."""
    return cast(sqlite3.Connection, cast(Any, database).connection())


def patiently(attempt: Callable[[], Result], give_up: Callable[[], bool]) -> Result:
    """What `attempt` gives, tried again while the database is locked, for BUSY_TIMEOUT_MS or until `give_up`."""
    until_s = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            return attempt()
        except (PeeweeException, sqlite3.Error) as exc:
            if "locked" not in str(exc) or time.monotonic() >= until_s or give_up():
                raise


def never() -> bool:
    """The `give_up` of those who wait to the end."""
    return False


@dataclass
class Session:
    """peewee's own connection, used directly because executemany is many times faster than its row objects.

    rev: number of the transaction under way; every exportable row written carries it.
    """

    connection: sqlite3.Connection
    rev: int = 0

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self.connection.execute(statement, values).fetchall()

    def insert(self, table: str, **columns: Any) -> int:
        """Insert one row and give its id."""
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        cursor = self.connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(columns.values()))
        return int(cursor.lastrowid or 0)


@dataclass(frozen=True)
class TickTime:
    """When a tick was and what it covers; until_ms: the end of that, or its own time when it covers nothing.

    interval_ms: how much time it might have covered. covered_ms: how much it does.
    """

    id: int
    ts_ms: int
    until_ms: int
    interval_ms: int
    covered_ms: int
