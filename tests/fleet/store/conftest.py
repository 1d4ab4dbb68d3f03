"""Stores to test with: every test that takes `place` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gua_fleet.store.database import open_store
from gua_fleet.store.place import Place
from gua_fleet.store.session import Session
from tests.fleet.store.postgres import Postgres, running_postgres
from tests.fleet.store.pulling import NOW_MS


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """Started once for all tests of this process."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres(postgres_server: Postgres) -> Postgres:
    """The server, with nothing stored in it."""
    postgres_server.clear()
    return postgres_server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.processes)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place without a store, on each of the two databases."""
    if request.param == "sqlite":
        return Place(path=tmp_path / "fleet.db")
    return Place(url=request.getfixturevalue("postgres").url)


@pytest.fixture
def session(place: Place) -> Iterator[Session]:
    """An empty store."""
    with open_store(place, now_ms=NOW_MS) as opened:
        yield opened
