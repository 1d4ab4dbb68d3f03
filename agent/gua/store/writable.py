"""Opening the database to write to it: made, brought up to date, and moved aside where it is damaged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Optional

from peewee import DatabaseError, PeeweeException, SqliteDatabase

from gua.clock import Clock
from gua.errors import DatabaseDamaged, DatabaseOfPredecessor, DatabaseUnusable
from gua.filesystem import is_network_path
from gua.store.connection import BUSY_SLICE_MS, connection_of, first_error, never, patiently
from gua.store.files import DAMAGE_CURE, PREDECESSOR, is_damage, move_aside, prepare_file, refuse_special
from gua.store.migrations import migrate
from gua.store.retention import Retention
from gua.store.wal import LIMIT_BYTES
from gua.store.writer import StoreWriter


def open_writer(
    path: Path,
    *,
    clock: Clock,
    machine_id: str,
    boot_id: str,
    hostname: Optional[str] = None,
    alone: bool = True,
    give_up: Callable[[], bool] = never,
    retention: Optional[Retention] = None,
) -> StoreWriter:
    """A writer on the database at `path`, made and brought up to date as needed.

    hostname: as reports shall name this host; None asks the system. give_up: ends the wait for a locked database, now
    and later. retention: what is kept how long; None: everything for ever. alone: no daemon writes beside this one.
    Then all of the file is looked at for damage, and one that is damaged or no database is moved aside, and the
    writer's `moved_aside` says where: under a daemon that has the file open, that would cost it every further tick.
    One of gpu-usage-audit is moved aside too, see files.waiting_imports.
    Raises DatabaseDamaged unless alone; DatabaseUnusable: newer schema, no permission, locked for too long.
    """
    try:
        refuse_special(path)
        prepare_file(path)
        open_it = _open_or_move_aside if alone else _open_as_it_is
        database, moved = patiently(lambda: open_it(path, clock.now_ms()), give_up)
        return StoreWriter(
            database,
            now_ms=clock.now_ms,
            machine_id=machine_id,
            boot_id=boot_id,
            hostname=hostname or os.uname().nodename,
            moved_aside=moved,
            give_up=give_up,
            retention=retention,
        )
    except (PeeweeException, sqlite3.Error, OSError) as exc:
        first = first_error(exc)
        if is_damage(first):
            raise DatabaseDamaged(f"cannot write {path}: {first}; {DAMAGE_CURE}") from exc
        raise DatabaseUnusable(f"cannot write {path}: {first}") from exc


def _open_as_it_is(path: Path, now_ms: int) -> tuple[SqliteDatabase, None]:
    return _open_writable(path, now_ms), None


def _open_or_move_aside(path: Path, now_ms: int) -> tuple[SqliteDatabase, Optional[Path]]:
    try:
        return _open_writable(path, now_ms, _look_for_damage), None
    except DatabaseOfPredecessor:
        aside = move_aside(path, now_ms, PREDECESSOR)
    except (DatabaseError, sqlite3.DatabaseError) as exc:
        if not is_damage(exc):
            raise
        aside = move_aside(path, now_ms)
    prepare_file(path)
    return _open_writable(path, now_ms), aside


def _open_writable(
    path: Path, now_ms: int, check: Callable[[sqlite3.Connection], None] = lambda connection: None
) -> SqliteDatabase:
    database = SqliteDatabase(str(path), timeout=BUSY_SLICE_MS / 1000)
    try:
        _prepare_connection(connection_of(database), path)
        migrate(database, str(path), now_ms)
        check(connection_of(database))
    except BaseException:
        database.close()
        raise
    return database


def _look_for_damage(connection: sqlite3.Connection) -> None:
    """Raise DatabaseError for a page that is broken: met later it would cost every tick, not this one look.

    It reads the whole file (half a second for 100 MB in memory), so it is for a daemon's start and not for every tick.
    """
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise sqlite3.DatabaseError(f"damaged: {' '.join(str(found).split())}")


# Of pages in memory. The 2 MB that SQLite takes otherwise fill over days and look like a leak, and a tick of 20 cards
# takes as long with these.
_CACHE_KIB = 256


def _prepare_connection(connection: sqlite3.Connection, path: Path) -> None:
    # Switching to WAL takes a lock, so the patience for it comes first.
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SLICE_MS}")
    connection.execute(f"PRAGMA journal_mode = {'TRUNCATE' if is_network_path(path) else 'WAL'}")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {LIMIT_BYTES}")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
