import os
from pathlib import Path

import pytest

from gua.errors import ConfigError
from gua.location import database_path


def test_option_beats_environment_beats_settings_beats_system_beats_own(tmp_path: Path) -> None:
    system = tmp_path / "system.db"
    environ = {"HOME": str(tmp_path), "GUA_DB": "/env.db"}
    assert database_path(Path("/flag.db"), Path("/file.db"), environ, system).path == Path("/flag.db")
    assert database_path(None, Path("/file.db"), environ, system).path == Path("/env.db")
    del environ["GUA_DB"]
    assert database_path(None, Path("/file.db"), environ, system).path == Path("/file.db")
    assert database_path(None, None, environ, system).path == tmp_path / ".gua/gua.db"
    system.touch()
    assert database_path(None, None, environ, system).path == system


def test_the_one_used_says_why(tmp_path: Path) -> None:
    location = database_path(None, None, {"GUA_DB": "/env.db"}, tmp_path / "none.db")
    assert str(location) == "/env.db (named by GUA_DB)"


def test_no_home_directory_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(ConfigError, match="--db"):
        database_path(None, None, {}, tmp_path / "none.db")


def test_a_home_on_the_network_gets_a_database_per_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gua.location.is_network_path", lambda path: True)
    monkeypatch.setattr("socket.gethostname", lambda: "gpu07")
    found = database_path(None, None, {"HOME": str(tmp_path)}, tmp_path / "none.db")
    assert found.path == tmp_path / ".gua/hosts/gpu07/gua.db"


def test_a_directory_one_may_not_enter_still_holds_the_systems_database(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gua.location.os.stat", refuse)
    system = Path("/srv/closed/gua.db")
    assert database_path(None, None, {"HOME": "/home/alice"}, system).path == system
