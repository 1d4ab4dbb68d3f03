"""A store's file opened by someone who may read it and no more; nothing is left beside it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from gua_fleet.errors import StoreUnusable

# A writer that has the file to itself does so for one chunk.
_PATIENCE_S = 30


def may_write(path: Path) -> bool:
    """Whether this user may write the file and what SQLite puts beside it, whoever started this program for them."""
    return all(os.access(each, os.W_OK, effective_ids=True) for each in (path, path.parent))


def open_read_only(path: Path) -> tuple[sqlite3.Connection, Callable[[], None]]:
    """A connection, and what raises StoreUnusable where the file was written to since.

    Raises StoreUnusable, and FileNotFoundError.

    Beside a file in WAL mode lies another one, through which writers and readers agree. While somebody has the store
    open, it is there and is enough; else it cannot be made without the right to write, and the file is read as it lies.
    """
    _refuse_unreadable(path)
    uri = path.absolute().as_uri()
    if _size(f"{path}-shm") or not _is_wal(path):
        return _connect(f"{uri}?mode=ro"), lambda: None
    if _size(f"{path}-wal"):
        raise StoreUnusable(
            f"{path}: it was not closed, and this user may only read it: let its owner run `gua-fleet store info`"
        )
    before = _identity(path)

    def unchanged() -> None:
        if _identity(path) != before:
            raise StoreUnusable(f"{path}: it was written to while it was read: try again")

    return _connect(f"{uri}?immutable=1"), unchanged


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=_PATIENCE_S, isolation_level=None)


def _refuse_unreadable(path: Path) -> None:
    try:
        path.open("rb").close()
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise StoreUnusable(
            f"{path}: this user may not read it ({exc.strerror}): ask its owner, or name another store with --store"
        ) from exc


def _is_wal(path: Path) -> bool:
    """By the file format's version in its header: 2 is WAL."""
    with path.open("rb") as file:
        return file.read(20)[18:19] == b"\x02"


def _size(name: str) -> int:
    try:
        return os.stat(name).st_size
    except FileNotFoundError:
        return 0


def _identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
