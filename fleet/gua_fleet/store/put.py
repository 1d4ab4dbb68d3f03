"""Many rows put into a table by their key: executemany on SQLite, COPY on PostgreSQL. Twice is the same as once."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

from gua_fleet.store.session import Session
from gua_fleet.store.shape import Incoming, Table

# Below it a COPY through a table of its own costs more than it saves.
_FEW_ROWS = 100
# In one statement: SQLite before 3.32 takes no more.
_MOST_VALUES = 999


def put(session: Session, history: int, incoming: Incoming) -> None:
    """Put the rows in. A row that is there already stays where it was written by a later revision."""
    if session.is_sqlite or incoming.rows < _FEW_ROWS:
        _insert(session, history, incoming)
    else:
        _copy(session, history, incoming)


def _insert(session: Session, history: int, incoming: Incoming) -> None:
    """On SQLite many rows with each statement, and what is left over one by one: to begin a statement and to end it
    costs as much as the row in it.
    """
    table = incoming.table
    names, marks = ", ".join(table.columns), ", ".join("?" * len(table.columns))
    many = _MOST_VALUES // len(table.columns) if session.is_sqlite else 1
    whole = incoming.rows - incoming.rows % many
    for part, each in ((slice(whole), many), (slice(whole, None), 1)):
        values = chain.from_iterable(zip(*(column[part] for column in incoming.columns), strict=True))
        rows = ", ".join([f"({history}, {marks})"] * each)
        insert = f"INSERT INTO {table.name} (history, {names}) VALUES {rows} {_on_conflict(table)}"
        # the same iterator over and over: a tuple of the next so many values, as often as there are
        session.execute_many(insert, zip(*[values] * (each * len(table.columns)), strict=True))


@lru_cache(maxsize=64)
def _on_conflict(table: Table) -> str:
    key = ", ".join(("history", *table.key))
    changed = [name for name in table.columns if name not in table.key]
    if table.constant or not changed:
        return f"ON CONFLICT ({key}) DO NOTHING"
    sets = ", ".join(f"{name} = excluded.{name}" for name in changed)
    newer = f" WHERE excluded.rev >= {table.name}.rev" if table.has_rev else ""
    return f"ON CONFLICT ({key}) DO UPDATE SET {sets}{newer}"


def _copy(session: Session, history: int, incoming: Incoming) -> None:
    rows, table = zip(*incoming.columns, strict=True), incoming.table
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
