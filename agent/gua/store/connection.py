"""peewee's connection, and the patience that a writer has with other writers."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

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


def first_error(error: BaseException) -> Exception:
    """What went wrong first: after a full disk SQLite rolled back by itself, and our own rollback complains last."""
    while isinstance(error.__context__, (PeeweeException, sqlite3.Error)):
        error = error.__context__
    return cast(Exception, error)
