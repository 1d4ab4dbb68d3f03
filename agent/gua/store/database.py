"""Opening the database to read it: a way in without write permission, and without what only writing needs."""

from __future__ import annotations

import contextlib
import grp
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Optional, TypeVar

from gua.errors import DatabaseChanged, DatabaseDamaged, DatabaseForbidden, DatabaseMissing, DatabaseUnusable
from gua.store.files import DAMAGE_CURE, is_damage, refuse_special
from gua.store.reader import StoreReader
from gua.store.version import SCHEMA_VERSION, check_version

Answer = TypeVar("Answer")

# No reader may keep the writer's -wal from being folded back for longer.
READ_LIMIT_S = 10.0

# How long to wait for a writer that has the file to itself.
BUSY_TIMEOUT_MS = 5_000

# What is not folded back yet, and what a crash in mid-write left to undo.
_LEFT = ("-wal", "-journal")

_ATTEMPTS = 20


def read_stored(path: Path, ask: Callable[[StoreReader], Answer]) -> Answer:
    """What `ask` answers of the database at `path`; asked again where the file changed under it. See open_reader."""
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(DatabaseChanged), open_reader(path) as reader:
            return ask(reader)
    raise _changed(path)


@contextlib.contextmanager
def open_reader(path: Path) -> Iterator[StoreReader]:
    """A reader on the database at `path`, on one unchanging view of it, needing read permission only.

    Raises DatabaseMissing when there is none; DatabaseUnusable when it cannot be read, is not ours or is newer;
    DatabaseChanged in the end where it was no unchanging view: nothing that was read then is right.
    """
    with contextlib.ExitStack() as stack:
        try:
            with _one_line(path):
                connection = _open_fit(path, stack)
        except PermissionError as exc:
            raise _forbidden(path) from exc
        except OSError as exc:
            raise DatabaseUnusable(f"cannot read {path}: {exc}") from exc
        with _one_line(path):
            yield StoreReader(connection, lambda: _renew(connection))


@contextlib.contextmanager
def _one_line(path: Path) -> Iterator[None]:
    """What SQLite says, as an error of ours."""
    try:
        yield
    except sqlite3.Error as exc:
        if is_damage(exc):
            raise DatabaseDamaged(f"cannot read {path}: {exc}; {DAMAGE_CURE}") from exc
        if "interrupted" in str(exc):
            raise DatabaseUnusable(
                f"reading {path} took longer than {READ_LIMIT_S:g} s: ask for less time, or when this host is less busy"
            ) from exc
        raise DatabaseUnusable(f"cannot read {path}: {exc}") from exc


def _open_fit(path: Path, stack: contextlib.ExitStack) -> sqlite3.Connection:
    """A connection within a transaction, to a database that this program reads."""
    if not path.exists():
        raise missing(path)
    refuse_special(path)
    connection = _open_readable(path, stack)
    connection.execute("BEGIN")
    _refuse_unready(check_version(connection, str(path)), path)
    _limit(connection)
    return connection


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
            yield _open_readable(path, stack)
        except PermissionError as exc:
            raise _forbidden(path) from exc
        except (sqlite3.Error, OSError) as exc:
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


def _open_readable(path: Path, stack: contextlib.ExitStack) -> sqlite3.Connection:
    uri = path.absolute().as_uri()
    try:
        return _connect(f"{uri}?mode=ro", stack)
    except sqlite3.Error as exc:
        if "locked" in str(exc):
            raise
    # Without write permission SQLite cannot make the -shm file that a WAL database needs when no daemon runs.
    with path.open("rb"):  # says plainly who may not read it at all
        pass
    before = _fingerprint(path)
    if not any(before[1:]):
        stack.push(lambda *_: _refuse_changed(path, before[0]))
        return _connect(f"{uri}?immutable=1", stack)
    import tempfile  # few readers need one

    # SQLite has all files of the copy open once it has read, so that nothing of it is left behind, however we end.
    with tempfile.TemporaryDirectory(prefix="gua-read-") as folder:
        return _connect(_stable_copy(path, Path(folder)).as_uri(), stack)


def _connect(uri: str, stack: contextlib.ExitStack) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
    stack.callback(connection.close)
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection


def _refuse_changed(path: Path, before: _Identity) -> None:
    """Raise where a writer folded something back into a file that was read as if nobody could."""
    if _identity(str(path)) != before:
        raise _changed(path)


def _changed(path: Path) -> DatabaseChanged:
    return DatabaseChanged(f"{path} changed while it was read: try again")


def _stable_copy(path: Path, folder: Path) -> Path:
    """A private copy of the database, and of what a crash left beside it, that did not change while it was taken."""
    for attempt in range(_ATTEMPTS):
        copy = folder / f"{attempt}.db"
        before = _fingerprint(path)
        for suffix in ("", *_LEFT):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        if _fingerprint(path) == before:
            return copy
        for suffix in ("", *_LEFT):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{copy}{suffix}")
    raise _changed(path)


_Identity = Optional[tuple[int, int, int]]
"""inode, size, time of the last change; None for a file that is empty or not there."""


def _fingerprint(path: Path) -> tuple[_Identity, ...]:
    return tuple(_identity(f"{path}{suffix}") for suffix in ("", *_LEFT))


def _identity(name: str) -> _Identity:
    try:
        status = os.stat(name)
    except FileNotFoundError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns) if status.st_size else None
