"""One connection as all of the store uses it: statements with `?` marks on SQLite and PostgreSQL alike."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from peewee import Database, SqliteDatabase

# What begins a transaction that writes, and one whose view does not change.
_BEGIN = {True: ("BEGIN IMMEDIATE", "BEGIN"), False: ("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")}

# How long a server that is started anew may take.
_PATIENCE_S = 30

Result = TypeVar("Result")


class SessionClosed(Exception):
    """The store was closed meanwhile, because the command is over."""


class Session:
    """peewee's own connection used directly: executemany and COPY are many times faster than its row objects.

    It belongs to one thread at a time: `writing` and `reading` let one in after another.
    """

    def __init__(self, database: Database, check_unchanged: Callable[[], None] = lambda: None) -> None:
        """check_unchanged: raises StoreUnusable where what was read since may be no one view of the store."""
        self.database = database
        self.check_unchanged = check_unchanged
        self.is_sqlite = isinstance(database, SqliteDatabase)
        self._lock = threading.RLock()
        self._closed = False

    @property
    def connection(self) -> Any:
        """A sqlite3.Connection or a psycopg.Connection."""
        if self._closed:
            raise SessionClosed
        return cast(Any, self.database).connection()

    def sql(self, statement: str) -> str:
        """The statement with this database's marks. It holds `?` for nothing but values."""
        return statement if self.is_sqlite else statement.replace("%", "%%").replace("?", "%s")

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Tuples."""
        return cast("list[Any]", self.connection.execute(self.sql(statement), values).fetchall())

    def value(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first column of the first row; None without one."""
        row = self.connection.execute(self.sql(statement), values).fetchone()
        return None if row is None else row[0]

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        """How many rows it changed."""
        return int(self.connection.execute(self.sql(statement), values).rowcount)

    def insert(self, table: str, **columns: Any) -> int:
        """Insert one row into a table with an `id` and give it."""
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        statement = f"INSERT INTO {table} ({names}) VALUES ({marks}) RETURNING id"
        if self.is_sqlite:  # SQLite before 3.35 (Debian 11, Rocky 9) knows no RETURNING
            statement = statement.removesuffix(" RETURNING id")
            return int(self.connection.execute(statement, tuple(columns.values())).lastrowid)
        return int(self.value(statement, tuple(columns.values())))

    def execute_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        if self.is_sqlite:
            self.connection.executemany(statement, rows)
            return
        with self.connection.cursor() as cursor:
            cursor.executemany(self.sql(statement), rows)

    def close(self) -> None:
        """Let whoever has a transaction finish it, within reason, and hang up."""
        got = self._lock.acquire(timeout=_PATIENCE_S)
        self._closed = True
        with contextlib.suppress(Exception):  # it may be gone already
            self.database.close()
        if got:
            self._lock.release()

    def again(self, work: Callable[[], Result]) -> Result:
        """What `work` gives, done once more where the server had hung up: it may have been started anew.

        work: a transaction, or something that changes nothing when it is done twice.
        """
        with self._lock:
            try:
                return work()
            except Exception:
                if self.is_sqlite or self._closed or not self._is_lost():
                    raise
                self._connect_again()
                return work()

    def _is_lost(self) -> bool:
        connection = self.connection
        return bool(connection.closed or connection.broken)

    def _connect_again(self) -> None:
        until_s = time.monotonic() + _PATIENCE_S
        while True:
            with contextlib.suppress(Exception):
                self.database.close()
            try:
                self.database.connect()
                return
            except Exception:
                if time.monotonic() >= until_s:
                    raise
            time.sleep(0.5)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: all of it or nothing."""
        with self._transaction(writes=True):
            yield

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """One unchanging view."""
        with self._transaction(writes=False):
            yield

    @contextlib.contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[None]:
        with self._lock:
            connection = self.connection
            connection.execute(_BEGIN[writes][not self.is_sqlite])
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                # a full disk or a lost connection has rolled back by itself
                with contextlib.suppress(Exception):
                    connection.execute("ROLLBACK")
                raise
