"""The database file itself: its rights, and what to do with a file that is no database."""

from __future__ import annotations

import contextlib
import glob
import os
import sqlite3
import stat
from pathlib import Path

from peewee import DatabaseError

from gua.errors import DatabaseUnusable
from gua.units import to_iso

FILE_MODE = 0o640
FOLDER_MODE = 0o750


def prepare_file(path: Path) -> None:
    """Make the folder and an empty file with our rights; one that exists is left as it is."""
    if not path.parent.is_dir():
        path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
    except FileExistsError:
        return
    os.close(handle)


def is_damage(error: Exception) -> bool:
    """Whether SQLite calls the file itself bad; locks, rights and full disks are OperationalErrors."""
    cause = error.__cause__ if isinstance(error, DatabaseError) and error.__cause__ else error
    return type(cause) in (DatabaseError, sqlite3.DatabaseError)


def refuse_special(path: Path) -> None:
    """Raise DatabaseUnusable for what can never be a database: opening a pipe would wait for ever."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise DatabaseUnusable(f"{path} is no ordinary file: name another with --db")


# What a database of gpu-usage-audit that lay in our place is called since, and what is added once it is imported.
PREDECESSOR = "gpu-usage-audit"
IMPORTED = ".imported"


def move_aside(path: Path, now_ms: int, why: str = "damaged") -> Path:
    """Rename a file that is no usable database, all that lies beside it with it, and say where it went."""
    stamp = to_iso(now_ms - now_ms % 1000).replace(":", "").replace("-", "")
    aside = path.with_name(f"{path.name}.{why}-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.{why}-{stamp}-{number}")
    rename_database(path, aside)
    return aside


def rename_database(path: Path, new: Path) -> None:
    """Rename a database and what lies beside it; programs that have it open go on with it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{suffix}", f"{new}{suffix}")


def waiting_imports(path: Path) -> list[Path]:
    """Databases of gpu-usage-audit that lay in the place of `path` and are not all imported yet, oldest first."""
    parts = ("-wal", "-shm", "-journal", IMPORTED)
    found = path.parent.glob(f"{glob.escape(path.name)}.{PREDECESSOR}-*")
    return sorted(one for one in found if not one.name.endswith(parts))
