"""Looking after the store: what is in it, room given back, a host forgotten. See `check` for whether it is whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gua_fleet.store.histories import HistoryRow, histories
from gua_fleet.store.ids import numbers
from gua_fleet.store.migrations import PG_SCHEMA
from gua_fleet.store.models import MODELS, OF_HISTORY, RAW
from gua_fleet.store.session import Session


@dataclass(frozen=True)
class Gone:
    """What went, or would."""

    histories: int
    rows: int


@dataclass(frozen=True)
class HostInfo:
    """What the store has of a host. asked_ms, outcome: of the last pull; pulled_ms: of the last that went to the end.

    first_day, last_day: UTC days since 1970 that have sums; None where none has. ticks: single samples' rows.
    """

    name: str
    outcome: str
    asked_ms: int
    pulled_ms: int | None
    histories: tuple[HistoryRow, ...]
    first_day: int | None
    last_day: int | None
    ticks: int


@dataclass(frozen=True)
class Info:
    """size_bytes: of the file, or of the tables on the server. rows: by table."""

    schema: int
    size_bytes: int
    rows: dict[str, int]
    hosts: tuple[HostInfo, ...]
    forgotten: int


def table_names(raw: bool | None = None) -> list[str]:
    """Of all models. raw: only those of single ticks, or only the others."""
    chosen = MODELS if raw is None else RAW if raw else [model for model in MODELS if model not in RAW]
    return [name_of(model) for model in chosen]


def name_of(model: Any) -> str:
    return str(model._meta.table_name)  # peewee's way to ask a model about itself


def store_info(session: Session) -> Info:
    known = histories(session)
    days = {
        history: (first, last)
        for history, first, last in session.rows("SELECT history, min(day), max(day) FROM tick_day GROUP BY history")
    }
    ticks = dict(session.rows("SELECT history, count(*) FROM tick GROUP BY history"))
    hosts = []
    for name, outcome, asked_ms, pulled_ms in session.rows(
        "SELECT name, outcome, asked_ms, pulled_ms FROM host ORDER BY name"
    ):
        own = tuple(one for one in known if one.name == name)
        spans = [days[one.id] for one in own if one.id in days]
        first = min((span[0] for span in spans), default=None)
        last = max((span[1] for span in spans), default=None)
        count = sum(ticks.get(one.id, 0) for one in own)
        hosts.append(HostInfo(name, outcome, asked_ms, pulled_ms, own, first, last, count))
    rows = {name: int(session.value(f"SELECT count(*) FROM {name}")) for name in table_names()}
    schema = int(session.value("SELECT max(version) FROM migration"))
    return Info(schema, size_bytes(session), rows, tuple(hosts), rows["forgotten"])


def size_bytes(session: Session) -> int:
    """Of everything that is stored, indexes included."""
    if session.is_sqlite:
        return int(session.value("PRAGMA page_count")) * int(session.value("PRAGMA page_size"))
    return int(
        session.value(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c"
            " JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'r'",
            (PG_SCHEMA,),
        )
    )


def vacuum(session: Session) -> tuple[int, int]:
    """Give room that nothing uses back to the disk, and let the database learn anew what is in it: bytes before, after.

    A SQLite file is written anew beside itself meanwhile.
    """
    before = size_bytes(session)
    if session.is_sqlite:
        session.execute("VACUUM")
        session.execute("ANALYZE")
        session.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        for name in table_names():
            session.execute(f"VACUUM (FULL, ANALYZE) {PG_SCHEMA}.{name}")
    return before, size_bytes(session)


def known_host(session: Session, name: str) -> bool:
    return session.value("SELECT 1 FROM host WHERE name = ?", (name,)) is not None


def forget_host(session: Session, name: str, *, dry_run: bool = False) -> Gone:
    """Remove everything about a host, all of it or nothing. dry_run: only say what would go."""
    with session.writing():
        ids = [
            row[0]
            for row in session.rows(
                "SELECT history.id FROM history JOIN host ON host.id = history.host WHERE host.name = ?", (name,)
            )
        ]
        rows = 0
        for table in [name_of(model) for model in OF_HISTORY] if ids else ():
            where = f"{table} WHERE history IN ({numbers(ids)})"
            if dry_run:
                rows += int(session.value(f"SELECT count(*) FROM {where}"))
            else:
                rows += session.execute(f"DELETE FROM {where}")
        if not dry_run:
            session.execute("DELETE FROM history WHERE host = (SELECT id FROM host WHERE name = ?)", (name,))
            session.execute("DELETE FROM host WHERE name = ?", (name,))
    return Gone(len(ids), rows)
