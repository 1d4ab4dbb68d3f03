"""Whose a file is and which schema it has: all that a reader needs to know of migrations."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from gua.errors import DatabaseOfPredecessor, DatabaseUnusable
from gua.store.copies import way_back

# "gua1" in ASCII: tells our files from other programs' and from the predecessor's.
APPLICATION_ID = 0x67756131

# What the last of migrations.STEPS makes.
SCHEMA_VERSION = 2


def check_version(connection: sqlite3.Connection, path: str) -> int:
    """The schema version of an open database; 0 when nothing is in it yet.

    Raises DatabaseUnusable when another program, or a newer gua, wrote it.
    """
    version, application, tables = (
        int(connection.execute(query).fetchone()[0])
        for query in ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
    )
    if tables and application != APPLICATION_ID:
        if _is_predecessors(connection):
            raise DatabaseOfPredecessor(
                f"{path} is a database of gpu-usage-audit: `gua daemon` takes it over when it starts, or import it "
                f"into another with `gua import {path} --db OTHER`"
            )
        raise DatabaseUnusable(f"{path} was not made by gua: name another file with --db")
    if version > SCHEMA_VERSION:
        raise DatabaseUnusable(
            f"{path} was written by a newer gua (schema {version}, this one knows {SCHEMA_VERSION}): update gua here"
            + way_back(Path(path), SCHEMA_VERSION)
        )
    return version


def _is_predecessors(connection: sqlite3.Connection) -> bool:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {"host", "gpu_sample", "proc_sample"} <= {row[0] for row in rows}
