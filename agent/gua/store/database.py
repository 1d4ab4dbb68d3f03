"""Opening the database: one writer's way in, and a reader's way in without write permission."""

from __future__ import annotations

import contextlib
import grp
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from peewee import DatabaseError, PeeweeException, SqliteDatabase

from gua.clock import Clock
from gua.errors import (
    DatabaseDamaged,
    DatabaseForbidden,
    DatabaseMissing,
    DatabaseOfPredecessor,
    DatabaseUnusable,
)
from gua.filesystem import is_network_path
from gua.store.files import PREDECESSOR, is_damage, move_aside, prepare_file, refuse_special
from gua.store.reader import StoreReader
from gua.store.session import BUSY_SLICE_MS, BUSY_TIMEOUT_MS, connection_of, never, patiently
from gua.store.version import SCHEMA_VERSION, check_version
from gua.store.wal import LIMIT_BYTES

if TYPE_CHECKING:
    from gua.store.retention import Retention
    from gua.store.writer import StoreWriter

# No reader may keep the writer's -wal from being folded back for longer.
READ_LIMIT_S = 10.0

# The database, what is not folded back yet, and what a crash in mid-write left to undo.
_PARTS = ("", "-wal", "-journal")

_COPY_ATTEMPTS = 20

_DAMAGE_CURE = "a daemon moves it aside and begins a new one when it starts"


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
    from gua.store.writer import StoreWriter  # readers start sooner without all that writing needs

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
        if is_damage(exc):
            raise DatabaseDamaged(f"cannot write {path}: {exc}; {_DAMAGE_CURE}") from exc
        raise DatabaseUnusable(f"cannot write {path}: {exc}") from exc


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
    from gua.store.migrations import migrate

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


def _prepare_connection(connection: sqlite3.Connection, path: Path) -> None:
    # Switching to WAL takes a lock, so the patience for it comes first.
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SLICE_MS}")
    connection.execute(f"PRAGMA journal_mode = {'TRUNCATE' if is_network_path(path) else 'WAL'}")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {LIMIT_BYTES}")


@contextlib.contextmanager
def open_reader(path: Path) -> Iterator[StoreReader]:
    """A reader on the database at `path`, on one unchanging view of it, needing read permission only.

    Raises DatabaseMissing when there is none; DatabaseUnusable when it cannot be read, is not ours or is newer.
    """
    with contextlib.ExitStack() as stack:
        try:
            if not path.exists():
                raise missing(path)
            refuse_special(path)
            database = _open_readable(path, stack)
            stack.enter_context(database.atomic())
            _refuse_unready(check_version(database, str(path)), path)
            _limit(connection_of(database))
            yield StoreReader(database, lambda: _renew(connection_of(database)))
        except PermissionError as exc:
            raise _forbidden(path) from exc
        except (PeeweeException, sqlite3.Error, OSError) as exc:
            if is_damage(exc):
                raise DatabaseDamaged(f"cannot read {path}: {exc}; {_DAMAGE_CURE}") from exc
            raise DatabaseUnusable(f"cannot read {path}: {exc}") from exc


@contextlib.contextmanager
def open_foreign(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program's SQLite file, read like ours: while it is written, and without permission to write.

    Raises DatabaseMissing, DatabaseUnusable. No transaction is open: each query sees what is there then.
    """
    with contextlib.ExitStack() as stack:
        try:
            if not path.exists():
                raise DatabaseMissing(f"no file at {path}")
            refuse_special(path)
            yield connection_of(_open_readable(path, stack))
        except PermissionError as exc:
            raise _forbidden(path) from exc
        except (PeeweeException, sqlite3.Error, OSError) as exc:
            raise DatabaseUnusable(f"cannot read {path}: {exc}") from exc


def _limit(connection: sqlite3.Connection) -> None:
    """End any query once the time is over; SQLite then says `interrupted`."""
    deadline_s = time.monotonic() + READ_LIMIT_S
    connection.set_progress_handler(lambda: int(time.monotonic() > deadline_s), 100_000)


def _renew(connection: sqlite3.Connection) -> None:
    """Let go of what is being read, so that the writer's -wal can be folded back, and go on with what is there now."""
    connection.execute("COMMIT")
    connection.execute("BEGIN")
    _limit(connection)


def missing(path: Path) -> DatabaseMissing:
    return DatabaseMissing(f"no database at {path}: run `gua daemon` first")


def _refuse_unready(version: int, path: Path) -> None:
    """Raise for a schema that only a writer can make fit to be read."""
    if version == 0:
        raise missing(path)  # a daemon is about to make it
    if version < SCHEMA_VERSION:
        raise DatabaseUnusable(
            f"{path} was written by an older gua (schema {version}, this one reads {SCHEMA_VERSION}): "
            "the daemon brings it up to date when it starts again"
        )


def _forbidden(path: Path) -> DatabaseForbidden:
    """Names the group that may read: that of the file, or of the folder that hides it."""
    cure = "ask its owner"
    for place in (path, path.parent):
        with contextlib.suppress(OSError, KeyError):
            cure = f"join group {grp.getgrgid(place.stat().st_gid).gr_name}, and log in anew"
            break
    return DatabaseForbidden(f"{path} may not be read by this user: {cure}")


def _open_readable(path: Path, stack: contextlib.ExitStack) -> SqliteDatabase:
    try:
        return _try_read(f"{path.absolute().as_uri()}?mode=ro", stack)
    except (PeeweeException, sqlite3.Error) as exc:
        if "locked" in str(exc):
            raise
        # Without write permission SQLite cannot make the -shm file that a WAL database needs when no daemon runs.
        import tempfile  # few readers need one

        copy = _stable_copy(path, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gua-read-"))))
        return _try_read(copy.as_uri(), stack)


def _try_read(uri: str, stack: contextlib.ExitStack) -> SqliteDatabase:
    database = SqliteDatabase(uri, uri=True, timeout=BUSY_TIMEOUT_MS / 1000)
    stack.callback(database.close)
    connection_of(database).execute("SELECT count(*) FROM sqlite_master").fetchone()
    return database


def _stable_copy(path: Path, folder: Path) -> Path:
    """A private copy of the database, and of what a crash left beside it, that did not change while it was taken."""
    for attempt in range(_COPY_ATTEMPTS):
        copy = folder / f"{attempt}.db"
        before = _fingerprint(path)
        for suffix in _PARTS:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        if _fingerprint(path) == before:
            return copy
        for suffix in _PARTS:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{copy}{suffix}")
    raise DatabaseUnusable(f"{path} changes faster than it can be copied: try again")


def _fingerprint(path: Path) -> tuple[Optional[tuple[int, int, int]], ...]:
    return tuple(_identity(f"{path}{suffix}") for suffix in _PARTS)


def _identity(name: str) -> Optional[tuple[int, int, int]]:
    try:
        status = os.stat(name)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
