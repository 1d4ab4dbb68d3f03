"""What the store's helpers share during one transaction and one tick."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union


@dataclass
class Session:
    """A connection used directly, because executemany is many times faster than peewee's row objects.

    rev: number of the transaction under way; every exportable row written carries it.
    """

    connection: sqlite3.Connection
    rev: int = 0

    def rows(self, statement: str, values: Union[Sequence[Any], Mapping[str, Any]] = ()) -> list[Any]:
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
