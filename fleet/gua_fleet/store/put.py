"""Many rows put into a table by their key: executemany on SQLite, COPY on PostgreSQL. Twice is the same as once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from gua_fleet.store.session import Session
from gua_fleet.store.shape import Incoming, Table

# Below it a COPY through a table of its own costs more than it saves.
_FEW_ROWS = 100


def put(session: Session, history: int, incoming: Incoming) -> None:
    """Put the rows in. A row that is there already stays where it was written by a later revision."""
    rows = zip(*incoming.columns, strict=True)
    table = incoming.table
    if session.is_sqlite or incoming.rows < _FEW_ROWS:
        marks = ", ".join("?" * len(table.columns))
        names = ", ".join(table.columns)
        insert = f"INSERT INTO {table.name} (history, {names}) VALUES ({history}, {marks}) {_on_conflict(table)}"
        session.execute_many(insert, rows)
        return
    _copy(session, history, incoming, rows)


@lru_cache(maxsize=64)
def _on_conflict(table: Table) -> str:
    key = ", ".join(("history", *table.key))
    changed = [name for name in table.columns if name not in table.key]
    if table.constant or not changed:
        return f"ON CONFLICT ({key}) DO NOTHING"
    sets = ", ".join(f"{name} = excluded.{name}" for name in changed)
    newer = f" WHERE excluded.rev >= {table.name}.rev" if table.has_rev else ""
    return f"ON CONFLICT ({key}) DO UPDATE SET {sets}{newer}"


def _copy(session: Session, history: int, incoming: Incoming, rows: Iterable[Sequence[Any]]) -> None:
    table = incoming.table
    names = ", ".join(("history", *table.columns))
    session.execute(f"CREATE TEMP TABLE IF NOT EXISTS incoming_{table.name} (LIKE {table.name}) ON COMMIT DELETE ROWS")
    words = any(type(field).__name__ == "TextField" for field in table.fields.values())
    with session.connection.cursor() as cursor:
        # a word may be `None`; a number may not, so that numbers are written as Python writes them
        form = "" if words else " WITH (NULL 'None')"
        with cursor.copy(f"COPY incoming_{table.name} ({names}) FROM STDIN{form}") as copy:
            if words:
                for row in rows:
                    copy.write_row((history, *row))
            else:
                line = f"{history}\t" + "\t".join(["%s"] * len(table.columns)) + "\n"
                copy.write("".join([line % row for row in rows]))
        cursor.execute(
            f"INSERT INTO {table.name} ({names}) SELECT {names} FROM incoming_{table.name} {_on_conflict(table)}"
        )
        cursor.execute(f"TRUNCATE incoming_{table.name}")
