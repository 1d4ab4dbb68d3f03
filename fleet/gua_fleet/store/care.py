"""Looking after the store: what is in it, whether it is whole, room given back, a host forgotten."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gua.coverage import SLOT_MS
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
    return [_name(model) for model in chosen]


def _name(model: Any) -> str:
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


def check_store(session: Session) -> Iterator[str]:
    """One line for each thing that is wrong; none where the store is whole."""
    if session.is_sqlite:
        damage = _damage(session)
        yield from (f"the file is damaged: {line}" for line in damage)
        if damage:
            return  # what stands in it means nothing
    for name in [_name(model) for model in OF_HISTORY]:
        strays = session.value(
            f"SELECT count(*) FROM {name} AS t WHERE NOT EXISTS (SELECT 1 FROM history WHERE history.id = t.history)"
        )
        if strays:
            yield f"{name}: {strays:,} rows belong to no history"
    yield from _days_differ(session)
    for name, host, slot in session.rows(
        "SELECT history.hostname, host.name, slot FROM (SELECT history, device, slot FROM card_slot"
        " GROUP BY history, device, slot HAVING sum(covered_ms) > ?) AS t JOIN history ON history.id = t.history"
        " JOIN host ON host.id = history.host LIMIT 20",
        (SLOT_MS,),
    ):
        yield f"{host} ({name}): a card has more time in slot {slot} than that has"


def _damage(session: Session) -> list[str]:
    try:
        return [line for (line,) in session.rows("PRAGMA integrity_check(20)") if line != "ok"]
    except sqlite3.DatabaseError as exc:  # so damaged that it cannot even be looked at
        return [str(exc)]


# table of slots, what is summed
_SUMS = (("card", "covered_ms"), ("card", "energy_mj"), ("user", "share_ms"), ("user", "card_ms"), ("tick", "ticks"))


def _days_differ(session: Session) -> Iterator[str]:
    """The sums of days must be those of their slots: a report adds up the one or the other."""
    for kind, amount in _SUMS:
        slots = (
            f"SELECT history, CAST(sum({amount}) AS BIGINT) AS total FROM {kind}_slot AS t WHERE NOT EXISTS"
            " (SELECT 1 FROM superseded AS s WHERE s.history = t.history AND s.slot = t.slot) GROUP BY history"
        )
        of_slots = dict(session.rows(slots))
        of_days = dict(session.rows(f"SELECT history, CAST(sum({amount}) AS BIGINT) FROM {kind}_day GROUP BY history"))
        for history in sorted(of_slots.keys() | of_days.keys()):
            if of_slots.get(history, 0) != of_days.get(history, 0):
                host = session.value(
                    "SELECT host.name FROM history JOIN host ON host.id = history.host WHERE history.id = ?", (history,)
                )
                yield f"{host}: {kind}_day and {kind}_slot differ in {amount}: `gua-fleet forget` it, and pull anew"


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
        for table in [_name(model) for model in OF_HISTORY] if ids else ():
            where = f"{table} WHERE history IN ({numbers(ids)})"
            if dry_run:
                rows += int(session.value(f"SELECT count(*) FROM {where}"))
            else:
                rows += session.execute(f"DELETE FROM {where}")
        if not dry_run:
            session.execute("DELETE FROM history WHERE host = (SELECT id FROM host WHERE name = ?)", (name,))
            session.execute("DELETE FROM host WHERE name = ?", (name,))
    return Gone(len(ids), rows)
