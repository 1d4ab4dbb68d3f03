"""Schema changes: small, ordered, each in one transaction with the record that it ran."""

from __future__ import annotations

from collections.abc import Callable

from peewee import SqliteDatabase

from gua.errors import DatabaseUnusable
from gua.store.models import MODELS, Migration
from gua.store.session import connection_of

# "gua1" in ASCII: tells our files from other programs' and from the predecessor's.
APPLICATION_ID = 0x67756131

# Holds that are open change each tick; an index over the closed ones only is never touched by that.
_INDEXES = (
    "CREATE INDEX hold_open ON hold(device) WHERE is_open",
    "CREATE INDEX hold_closed_tick ON hold(last_tick) WHERE NOT is_open",
    "CREATE INDEX hold_closed_time ON hold(until_ms) WHERE NOT is_open",
)


def _create_tables(database: SqliteDatabase) -> None:
    with database.bind_ctx(MODELS):
        database.create_tables(MODELS)
    for statement in _INDEXES:
        connection_of(database).execute(statement)


# Number N is the schema version after it ran. Never change one that was released; append.
MIGRATIONS: tuple[Callable[[SqliteDatabase], None], ...] = (_create_tables,)
SCHEMA_VERSION = len(MIGRATIONS)


def check_version(database: SqliteDatabase, path: str) -> int:
    """The schema version of an open database; 0 when nothing is in it yet.

    Raises DatabaseUnusable when another program, or a newer gua, wrote it.
    """
    version, application, tables = (
        int(connection_of(database).execute(query).fetchone()[0])
        for query in ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
    )
    if tables and application != APPLICATION_ID:
        raise DatabaseUnusable(f"{path} was not made by gua: name another file with --db")
    if version > SCHEMA_VERSION:
        raise DatabaseUnusable(
            f"{path} was written by a newer gua (schema {version}, this one knows {SCHEMA_VERSION}): update gua here"
        )
    return version


def migrate(database: SqliteDatabase, path: str, now_ms: int) -> None:
    """Bring the schema up to date. Raises DatabaseUnusable when it is newer than this program."""
    with database.atomic("IMMEDIATE"):
        version = check_version(database, path)
        for number, step in enumerate(MIGRATIONS[version:], start=version + 1):
            with database.bind_ctx([Migration]):
                database.create_tables([Migration])
                step(database)
                Migration.create(version=number, applied_ms=now_ms)
            connection_of(database).execute(f"PRAGMA user_version = {number}")
        if version == 0:
            connection_of(database).execute(f"PRAGMA application_id = {APPLICATION_ID}")
