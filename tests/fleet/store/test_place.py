"""Where the store lies, and that no password of it is ever shown."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gua_fleet.config import load_config
from gua_fleet.errors import StoreMissing, StoreUnusable
from gua_fleet.store.database import open_store, told
from gua_fleet.store.migrations import SCHEMA_VERSION, STEPS
from gua_fleet.store.models import MODELS
from gua_fleet.store.place import Place, find_place, without_password
from gua_fleet.store.session import Session
from tests.agent.store.opened import writing

URLS = [
    ("postgresql://u:p%40ss@h:5/d", "postgresql://u:***@h:5/d", "p@ss"),
    ("postgres://u:a:b@h/d?sslpassword=xyz&user=u", "postgres://u:***@h/d?sslpassword=***&user=u", "xyz"),
    ("postgresql://u:pa?s@h/d", "postgresql://u:***@h/d", "pa?s"),
    ("postgresql://u:p/as@h/d?password=xyz", "postgresql://u:***@h/d?password=***", "p/as"),
    ("postgresql://u:one@two@h/d", "postgresql://u:***@h/d", "two"),
    ("postgresql:///d?user=a@b:c&password=hidden", "postgresql:///d?user=a@b:c&password=***", "hidden"),
    ("postgresql:///d?password=hidden", "postgresql:///d?password=***", "hidden"),
]


@pytest.mark.parametrize(("url", "shown", "secret"), URLS)
def test_a_password_is_never_shown(url: str, shown: str, secret: str) -> None:
    place = find_place(url)
    assert (str(place), without_password(url)) == (shown, shown)
    assert secret not in repr(place) + told(place, RuntimeError(f"cannot log in with {secret} at {url}"))


def test_what_has_no_password_is_shown_as_it_is() -> None:
    assert str(find_place("postgresql://u@h/d")) == "postgresql://u@h/d"
    assert str(find_place("some/fleet.db")) == "some/fleet.db"


def test_words_about_a_part_of_a_password_do_not_tell_it() -> None:
    """A library takes what follows an `@` or `/` in it for a host or a port, and says that there is none."""
    place = find_place("postgresql://u:one@two/three@h/d")
    assert told(place, RuntimeError("no host two")) == "postgresql://u:***@h/d: no host ***"
    assert told(place, RuntimeError('no port "three"')) == 'postgresql://u:***@h/d: no port "***"'
    assert told(find_place("postgresql://u:a?ss@h/d"), RuntimeError("permission denied")).count("***") == 1


@pytest.mark.parametrize(
    "named", ["host=db password=secret", "dbname=gua password = secret", "postgresql:u:secret@h/d", "postgres:secret"]
)
def test_what_was_meant_for_a_server_is_not_made_a_file_of_that_name(named: str) -> None:
    with pytest.raises(StoreUnusable, match="postgresql://USER@HOST/DATABASE") as caught:
        find_place(named)
    assert "secret" not in str(caught.value)


def test_the_default_is_where_data_belongs(tmp_path: Path) -> None:
    assert find_place(None, {"XDG_DATA_HOME": str(tmp_path)}).path == tmp_path / "gua/fleet.db"
    home = Path("~/.local/share/gua/fleet.db").expanduser()
    assert find_place(None, {}).path == find_place(None, {"XDG_DATA_HOME": "relative"}).path == home


def test_settings_name_it_and_what_is_wrong_is_said_without_a_password(tmp_path: Path) -> None:
    (tmp_path / "gua-fleet.yml").write_text("store: postgresql://u@h/d\n")
    config = load_config(str(tmp_path / "gua-fleet.yml"), environ={})
    assert (config.store, config.raw_retention_s) == ("postgresql://u@h/d", 30 * 86_400.0)
    with pytest.raises(Exception, match="GUA_FLEET_STORE") as caught:
        load_config(None, environ={"GUA_FLEET_STORE": "mysql://u:secret@h/d", "HOME": str(tmp_path)})
    assert "secret" not in str(caught.value)


def test_a_new_file_is_its_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with open_store(Place(path=tmp_path / "deep/er/fleet.db"), now_ms=0):
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "deep").rglob("*")}
    finally:
        os.umask(before)
    assert modes["fleet.db"] == modes["fleet.db-wal"] == 0o600
    assert modes["er"] == 0o700


def test_nothing_there_yet_is_said(place: Place) -> None:
    words = "there is no history yet: run `gua-fleet pull` first"
    with pytest.raises(StoreMissing, match=words), open_store(place, now_ms=0, create=False):
        pass


def test_a_newer_schema_is_refused_and_not_touched(place: Place) -> None:
    with open_store(place, now_ms=0) as session:
        session.execute("INSERT INTO migration (version, applied_ms) VALUES (?, ?)", (SCHEMA_VERSION + 1, 0))
    with pytest.raises(StoreUnusable, match="was written by a newer gua-fleet"), open_store(place, now_ms=0):
        pass


def test_a_hosts_own_database_is_not_taken_for_a_store(tmp_path: Path) -> None:
    with writing(tmp_path / "gua.db"):
        pass
    place = Place(path=tmp_path / "gua.db")
    with pytest.raises(StoreUnusable, match="was not made by gua-fleet"), open_store(place, now_ms=0):
        pass


def test_both_databases_have_every_table_and_column_of_the_models(session: Session) -> None:
    for model in MODELS:
        columns = ", ".join(model._meta.columns)  # type: ignore[attr-defined]
        assert session.rows(f"SELECT {columns} FROM {model._meta.table_name}") == []  # type: ignore[attr-defined]
    assert len(STEPS) + 1 == SCHEMA_VERSION
