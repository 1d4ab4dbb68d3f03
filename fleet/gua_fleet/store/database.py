"""Opening the store: its file made for its user alone, or PostgreSQL spoken to; its schema brought up to date."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from peewee import Database, PeeweeException, PostgresqlDatabase, SqliteDatabase

from gua.filesystem import is_network_path
from gua.store.copies import KEPT_MS, drop_before, find_copies
from gua_fleet.errors import StoreMissing, StoreUnusable
from gua_fleet.store.migrations import PG_SCHEMA, SCHEMA_VERSION, check_version, migrate
from gua_fleet.store.place import Place
from gua_fleet.store.read_only import may_write, open_read_only
from gua_fleet.store.session import Session

# Two controllers take turns by the chunk, which takes a tenth of a second.
_PATIENCE_S = 30
_CONNECT_S = 10


@contextlib.contextmanager
def open_store(place: Place, *, now_ms: int, create: bool = True) -> Iterator[Session]:
    """A session on the store at `place`, closed at the end.

    create: make what is not there. now_ms: this machine's clock, Unix, UTC.
    Raises StoreMissing unless `create`; StoreUnusable: not ours, newer, no permission, refused; also for whatever goes
    wrong with the database later, within.
    """
    with store_errors(place):
        session = Session(_open(place, create=create))
        try:
            if not create and check_version(session, place) == 0:
                raise StoreMissing(_missing(place))
            if not session.is_sqlite:
                _enter_schema(session)
            migrate(session, place, now_ms)
            if place.path is not None:
                drop_before(find_copies(place.path), now_ms - KEPT_MS)
            yield session
        finally:
            session.close()


@contextlib.contextmanager
def open_to_read(place: Place, *, now_ms: int) -> Iterator[Session]:
    """A session that only reads: it needs no more than that right, and waits for nobody who writes.

    Raises as `open_store` does, StoreMissing among it; StoreUnusable in the end where a file that could only be read as
    it lay there was written to meanwhile: see `Session.check_unchanged`.
    """
    with store_errors(place):
        session = _reading_session(place)
        try:
            version = check_version(session, place)
            if version == 0:
                raise StoreMissing(_missing(place))
            if version < SCHEMA_VERSION:  # the one time that reading needs the right to write
                if place.path is not None and not may_write(place.path):
                    raise StoreUnusable(
                        f"{place} was written by an older gua-fleet, and this user may only read it: let its owner run "
                        "`gua-fleet store info` with this one"
                    )
                migrate(session, place, now_ms)
            yield session
            session.check_unchanged()
        finally:
            session.close()


def _reading_session(place: Place) -> Session:
    if place.path is None or may_write(place.path):
        return Session(_open(place, create=False))
    try:
        connection, unchanged = open_read_only(place.path)
    except FileNotFoundError as exc:
        raise StoreMissing(_missing(place)) from exc
    database = _Opened(str(place), thread_safe=False)
    database.opened = connection
    database.connect()
    return Session(database, unchanged)


class _Opened(SqliteDatabase):
    """peewee's own, with a connection that is there already."""

    opened: sqlite3.Connection

    def _connect(self) -> sqlite3.Connection:
        return self.opened


def _open(place: Place, *, create: bool) -> Database:
    if place.path is None:
        return _postgresql(place)
    try:
        return _sqlite(place.path, create=create)
    except OSError as exc:  # only here: within, it may be about anything
        raise StoreUnusable(f"{place}: cannot be made or opened: {exc.strerror}") from exc


@contextlib.contextmanager
def store_errors(place: Place) -> Iterator[None]:
    """Within it what a database library raises becomes StoreUnusable: one line, without a password."""
    try:
        yield
    except (PeeweeException, sqlite3.Error) as exc:
        raise StoreUnusable(told(place, exc)) from exc
    except Exception as exc:
        if not is_postgres_error(exc):
            raise
        raise StoreUnusable(told(place, exc)) from exc


def is_hosts_fault(exc: BaseException) -> bool:
    """Whether the database refused a value, and not its work."""
    names = {kind.__name__ for kind in type(exc).__mro__}
    return bool(names & {"DataError", "IntegrityError", "CardinalityViolation", "OverflowError"})


def is_postgres_error(exc: BaseException) -> bool:
    """Without importing a library that may not be here."""
    return any(kind.__module__.partition(".")[0] == "psycopg" for kind in type(exc).__mro__)


def told(place: Place, exc: BaseException) -> str:
    """What went wrong with the store, in one line."""
    words = re.split(r"\n(?:DETAIL|LINE|HINT|CONTEXT)\b", str(exc))[0]
    text = place.without_secret(" ".join(words.split())) or type(exc).__name__
    cure = ""
    if "disk is full" in text or "No space left" in text:
        cure = ": make room there; nothing that was stored before is lost, and the next pull goes on from it"
    elif "permission denied" in text:
        cure = ": this account has no right to that; docs/fleet-store.md says which are needed"
    elif "locked" in text:
        cure = ": another program writes to it; try again"
    elif "not a database" in text or "malformed" in text:
        cure = ": name another store with --store, or move this one aside and pull anew"
    return f"{place}: {text}{cure}"


def _missing(place: Place) -> str:
    return f"{place}: there is no history yet: run `gua-fleet pull` first, or name another store with --store"


def _sqlite(path: Path, *, create: bool) -> Database:
    if not path.exists():
        if not create:
            raise StoreMissing(_missing(Place(path=path)))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # what SQLite puts beside it gets the same rights
    # one connection for all threads, which take turns
    database = SqliteDatabase(str(path), thread_safe=False, check_same_thread=False, timeout=_PATIENCE_S)
    database.connect()
    try:
        _prepare(cast(Any, database).connection(), path)
    except BaseException:
        database.close()  # what is no database is found only now
        raise
    return database


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(f"PRAGMA journal_mode = {'TRUNCATE' if is_network_path(path) else 'WAL'}")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -16000")


class _Postgresql(PostgresqlDatabase):
    """peewee's own, connected by URL with psycopg 3 whichever peewee it is."""

    url = ""

    def _connect(self) -> Any:
        import psycopg

        connection = psycopg.connect(self.url, connect_timeout=_CONNECT_S, autocommit=True)
        connection.execute(f"SET search_path TO {PG_SCHEMA}")
        connection.execute(f"SET lock_timeout = '{_PATIENCE_S}s'")
        return connection

    def get_binary_type(self) -> Any:
        import psycopg

        return psycopg.Binary

    def _set_server_version(self, conn: Any) -> None:
        self.server_version = conn.info.server_version


def _postgresql(place: Place) -> Database:
    try:
        import psycopg  # noqa: F401 - only whether it is there
    except ImportError as exc:
        raise StoreUnusable(f"{place}: PostgreSQL needs psycopg: install gua-fleet[postgres]") from exc
    database = _Postgresql("by its URL", prefer_psycopg3=True, thread_safe=False)
    database.url = place.url or ""
    database.connect()
    return database


def _enter_schema(session: Session) -> None:
    """Make our schema where it is not there; whoever may not make one gets it from an administrator."""
    if session.value("SELECT 1 FROM pg_namespace WHERE nspname = ?", (PG_SCHEMA,)) is None:
        session.execute(f"CREATE SCHEMA IF NOT EXISTS {PG_SCHEMA}")
