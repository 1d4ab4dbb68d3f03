"""Schema changes: small, ordered, each in one transaction with the record that it ran. The same on both databases."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from peewee import Model

from gua.store.copies import CopyFailed, copy_of_a_change, drop_unfinished, keep_copy, way_back
from gua_fleet.errors import StoreUnusable
from gua_fleet.store.models import MODELS, Migration
from gua_fleet.store.place import Place
from gua_fleet.store.session import Session

# What the last of STEPS makes.
SCHEMA_VERSION = 1

# Step N makes version N + 2 of version N + 1. Never change one that was released; append. A new store is made from the
# models at once: tests hold that both ways lead to the same schema.
STEPS: tuple[Callable[[Session], None], ...] = ()

# In PostgreSQL all tables lie in a schema of their own, so that any database will do.
PG_SCHEMA = "gua_fleet"

# Any number that is always the same: two controllers must not make one store at the same time.
_LOCK = 0x67756166


def migrate(session: Session, place: Place, now_ms: int) -> None:
    """Bring the schema up to date; before the first step a copy of a file is kept, and of a server's it is said.

    Raises StoreUnusable: newer than this program, not ours, or no copy can be kept; then nothing was changed.
    """
    with session.writing():
        _lock(session)
        version = check_version(session, place)
        if version == 0:
            _create(session)
            _record(session, SCHEMA_VERSION, now_ms)
        if place.path is not None:
            drop_unfinished(place.path)
    for number in range(max(version, 1), SCHEMA_VERSION):
        with copy_of_a_change(place.path) as copies, session.writing():
            _lock(session)
            changes = check_version(session, place) == number  # another process may have been faster
            if changes:
                if number == version and place.path is not None:
                    copies.append(_keep_copy(place.path, number, now_ms))
                STEPS[number - 1](session)
                _record(session, number + 1, now_ms)
        if changes and number == version:
            _tell(place, number, copies)


def _keep_copy(path: Path, version: int, now_ms: int) -> Path:
    try:
        return keep_copy(path, version, now_ms)
    except CopyFailed as exc:
        raise StoreUnusable(str(exc)) from exc


def _tell(place: Place, version: int, copies: Sequence[Path]) -> None:
    """On standard error: it happens once in a store's life, under whichever command comes first."""
    said = "no copy is made of a PostgreSQL database: its backups are its administrator's"
    for copy in copies:
        said = f"the copy of before is {copy}"
    sys.stderr.write(f"store: {place}: schema {version} becomes {SCHEMA_VERSION}; {said}\n")


def check_version(session: Session, where: Place) -> int:
    """The schema version; 0 when nothing is in it yet. Raises StoreUnusable: not ours, or of a newer program."""
    tables = set(session.database.get_tables(None if session.is_sqlite else PG_SCHEMA))
    if not tables:
        return 0
    if not session.is_sqlite and not session.value("SELECT has_schema_privilege(?, 'USAGE')", (PG_SCHEMA,)):
        raise StoreUnusable(
            f"{where}: this account may not look into its schema {PG_SCHEMA}: let its owner grant it the right"
        )
    ours = {"migration", "host", "history"} <= tables
    version = session.value("SELECT max(version) FROM migration") if ours else None
    if version is None:
        raise StoreUnusable(f"{where} was not made by gua-fleet: name another store with --store")
    if version > SCHEMA_VERSION:
        raise StoreUnusable(
            f"{where} was written by a newer gua-fleet (schema {version}, this one knows {SCHEMA_VERSION}): "
            f"update gua-fleet here{way_back(where.path, SCHEMA_VERSION) if where.path else ''}"
        )
    return int(version)


def _create(session: Session) -> None:
    models: list[type[Model]] = [*MODELS, Migration]
    for model in models:
        meta: Any = model._meta  # peewee's way to ask a model about itself
        meta.without_rowid = meta.by_key and session.is_sqlite
    with session.database.bind_ctx(models):
        session.database.create_tables(models, safe=False)


def _lock(session: Session) -> None:
    if not session.is_sqlite:
        session.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))


def _record(session: Session, version: int, now_ms: int) -> None:
    session.execute("INSERT INTO migration (version, applied_ms) VALUES (?, ?)", (version, now_ms))
