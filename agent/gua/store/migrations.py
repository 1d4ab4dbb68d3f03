"""Schema changes: small, ordered, each in one transaction with the record that it ran."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

from peewee import SqliteDatabase

from gua.errors import DatabaseUnusable
from gua.store.connection import connection_of
from gua.store.copies import CopyFailed, copy_of_a_change, drop_unfinished, keep_copy
from gua.store.files import is_damage
from gua.store.migration_2 import pack_samples
from gua.store.models import MODELS, Migration
from gua.store.packing import GPU_SAMPLE_VIEW
from gua.store.version import APPLICATION_ID, SCHEMA_VERSION, check_version

logger = logging.getLogger(__name__)

# What a new database has beside its tables. Holds that are open change each tick; an index over the closed ones only
# is never touched by that.
_MORE = (
    "CREATE INDEX hold_open ON hold(device) WHERE is_open",
    "CREATE INDEX hold_closed_tick ON hold(last_tick) WHERE NOT is_open",
    "CREATE INDEX hold_closed_time ON hold(until_ms) WHERE NOT is_open",
    GPU_SAMPLE_VIEW,
)

# Step N makes version N + 2 of version N + 1. Never change one that was released; append. A new database is made
# from the models at once: tests hold that both ways lead to the same schema.
STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (pack_samples,)


def migrate(database: SqliteDatabase, path: str, now_ms: int) -> None:
    """Bring the schema up to date; before the first step a copy is kept, which an older gua can go on from.

    Raises DatabaseUnusable: newer than this program, or no copy can be kept; then nothing was changed.
    """
    with database.atomic("IMMEDIATE"):
        version = check_version(connection_of(database), path)
        if version == 0:
            _create(database)
            _record(database, SCHEMA_VERSION, now_ms)
        drop_unfinished(Path(path))
    for number in range(max(version, 1), SCHEMA_VERSION):
        with copy_of_a_change(Path(path)) as copies, database.atomic("IMMEDIATE"):
            # another process may have been faster
            if check_version(connection_of(database), path) == number:
                if number == version:
                    copies.append(_keep_copy(path, number, now_ms))
                STEPS[number - 1](connection_of(database))
                _record(database, number + 1, now_ms)
        for copy in copies:
            logger.info("%s: schema %d becomes %d; %s is the copy of before", path, version, SCHEMA_VERSION, copy)


def _keep_copy(path: str, version: int, now_ms: int) -> Path:
    try:
        return keep_copy(Path(path), version, now_ms)
    except CopyFailed as exc:
        if isinstance(exc.__cause__, sqlite3.DatabaseError) and is_damage(exc.__cause__):
            raise exc.__cause__ from None  # who opened it moves it aside
        raise DatabaseUnusable(str(exc)) from exc


def _create(database: SqliteDatabase) -> None:
    with database.bind_ctx([*MODELS, Migration]):
        database.create_tables([*MODELS, Migration])
    for statement in _MORE:
        connection_of(database).execute(statement)
    connection_of(database).execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _record(database: SqliteDatabase, version: int, now_ms: int) -> None:
    connection = connection_of(database)
    connection.execute("INSERT INTO migration (version, applied_ms) VALUES (?, ?)", (version, now_ms))
    connection.execute(f"PRAGMA user_version = {version}")
