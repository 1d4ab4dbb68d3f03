"""A host with a short history, its agent, and a store to pull into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gua_fleet.store.database import open_store
from gua_fleet.store.place import Place
from gua_fleet.store.session import Session
from tests.agent.export.test_stream import history
from tests.fleet.pull.hosts import real_agent
from tests.fleet.store.postgres import Postgres, running_postgres
from tests.fleet.store.pulling import NOW_MS


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return history(tmp_path_factory.mktemp("host") / "gua.db")


@pytest.fixture(autouse=True)
def _clean_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def agent(tmp_path: Path, database: Path) -> Path:
    return real_agent(tmp_path / "gua", database)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(path=tmp_path / "fleet.db")


@pytest.fixture
def session(place: Place) -> Iterator[Session]:
    with open_store(place, now_ms=NOW_MS) as opened:
        yield opened


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A server that the tests of a file may stop and start."""
    with running_postgres() as server:
        yield server
