from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gua.cloud.config import CloudConfig, config_path, load_config
from gua.cloud.config_file import open_config_writer, remove_config
from gua.cloud.token import Token
from gua.errors import ConfigError, GuaError, NotEnrolled, UsageError
from tests.agent.cloud.enrolled import AGENT_TOKEN, write_enrolment
from tests.agent.running import PACKAGES

URL = "https://board.example.org"


def load(path: Path, **options: bool) -> tuple[CloudConfig, list[str]]:
    warnings: list[str] = []
    return load_config(path, warnings.append, machine_id="here", **options), warnings


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    config = CloudConfig(URL, "host-1", "node-1", Token(AGENT_TOKEN), "gua_a", "here")
    with open_config_writer(tmp_path / "sub" / "cloud.json") as writer:
        writer.save(config)
    loaded, warnings = load(tmp_path / "sub" / "cloud.json")
    assert (loaded.agent_token.reveal(), warnings) == (AGENT_TOKEN, [])
    assert (loaded.server_url, loaded.host_id, loaded.display_name) == (URL, "host-1", "node-1")
    assert AGENT_TOKEN not in repr(loaded)


def test_the_file_of_an_older_agent_is_loaded(tmp_path: Path) -> None:
    assert load(write_enrolment(tmp_path / "cloud.json", URL))[0].machine_id == ""


def test_no_file_is_not_enrolled(tmp_path: Path) -> None:
    for path in (tmp_path / "cloud.json", tmp_path / "nowhere" / "cloud.json"):
        with pytest.raises(NotEnrolled, match="run `gua enroll`"):
            load(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "{",
        f'{{"serverUrl": "{URL}", "agentToken": "{AGENT_TOKEN}", "hostId": "host',
        f'["{AGENT_TOKEN}"]',
        f'{{"agentToken": "{AGENT_TOKEN}"}}',
        '{"serverUrl": "' + URL + '", "hostId": 7, "displayName": "n", "agentToken": "a", "tokenPrefix": "t"}',
        '{"serverUrl": "nowhere", "hostId": "h", "displayName": "n", "agentToken": "a", "tokenPrefix": "t"}',
        '{"serverUrl": "' + URL + '", "hostId": "h", "displayName": "n", "agentToken": "a\\nb", "tokenPrefix": "t"}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_told_in_one_line_that_quotes_none_of_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cloud.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        load(path)
    told = str(caught.value)
    assert str(path) in told
    assert "\n" not in told
    assert AGENT_TOKEN not in told


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o666])
def test_a_file_that_others_can_read_is_closed_and_that_is_told(tmp_path: Path, mode: int) -> None:
    path = write_enrolment(tmp_path / "cloud.json", URL, mode)
    _, warnings = load(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (warning,) = warnings
    assert f"{mode:04o}" in warning
    assert load(path)[1] == []


def test_a_look_changes_nothing(tmp_path: Path) -> None:
    path = write_enrolment(tmp_path / "cloud.json", URL, 0o644)
    assert "chmod 0600" in load(path, repair=False)[1][0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_file_of_another_machine_is_refused(tmp_path: Path) -> None:
    path = write_enrolment(tmp_path / "cloud.json", URL, machineId="elsewhere")
    with pytest.raises(ConfigError, match="another machine"):
        load(path)
    assert load(write_enrolment(path, URL, machineId="here"))[0].machine_id == "here"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = write_enrolment(tmp_path / "cloud.json", URL)
    os.chown(path, 65534, 65534)
    with pytest.raises(ConfigError, match="uid 65534"):
        load(path)


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ConfigError):
            load(path)


def test_a_writer_that_saved_nothing_leaves_nothing(tmp_path: Path) -> None:
    before = write_enrolment(tmp_path / "cloud.json", URL).read_text()
    with open_config_writer(tmp_path / "cloud.json"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["cloud.json"]
    assert (tmp_path / "cloud.json").read_text() == before


def test_what_a_killed_one_left_is_used_up(tmp_path: Path) -> None:
    """A token may be in it; and its name may not be in the way of the next enrolment."""
    left = tmp_path / ".cloud.json.new"
    left.write_text("x" * 5000)
    config = CloudConfig(URL, "host-1", "node-1", Token(AGENT_TOKEN), "gua_a", "here")
    with open_config_writer(tmp_path / "cloud.json") as writer:
        writer.save(config)
    assert [path.name for path in tmp_path.iterdir()] == ["cloud.json"]
    assert load(tmp_path / "cloud.json")[0] == config
    left.write_text(AGENT_TOKEN)
    assert remove_config(tmp_path / "cloud.json") is True
    assert list(tmp_path.iterdir()) == []
    assert remove_config(tmp_path / "cloud.json") is False


def test_a_full_disk_is_found_before_the_board_is_asked(tmp_path: Path) -> None:
    """By a limit to the size of this process's files, which a full disk answers alike: as an error of the system."""
    code = (
        "import pathlib, resource, signal, sys; from gua.cloud import config_file; from gua.errors import GuaError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "with config_file.open_config_writer(pathlib.Path(sys.argv[1])): print('let in')\n"
    )
    environ = {**os.environ, "PYTHONPATH": PACKAGES}
    line = [sys.executable, "-c", code, str(tmp_path / "cloud.json")]
    done = subprocess.run(line, env=environ, capture_output=True, text=True)
    assert "cannot be written: File too large; make room" in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_two_at_a_time_are_not_let_in(tmp_path: Path) -> None:
    path = tmp_path / "cloud.json"
    with open_config_writer(path) as first:
        with pytest.raises(GuaError, match="another `gua enroll`"), open_config_writer(path):
            pass
        first.save(CloudConfig(URL, "host-1", "node-1", Token(AGENT_TOKEN), "gua_a"))
        with open_config_writer(path) as second:  # its name is free again, and stays the second one's
            pass
        assert second.saved is False
    assert [one.name for one in tmp_path.iterdir()] == ["cloud.json"]


def test_a_file_that_was_put_there_to_read_along_is_not_used(tmp_path: Path) -> None:
    secret, beside = tmp_path / "other", tmp_path / ".cloud.json.new"
    secret.write_text("precious")
    for put in (lambda: os.link(secret, beside), lambda: beside.symlink_to(secret), lambda: os.mkfifo(beside)):
        put()
        with pytest.raises(GuaError), open_config_writer(tmp_path / "cloud.json"):
            pass
        beside.unlink()
    assert secret.read_text() == "precious"


@pytest.mark.parametrize("text", ["[daemon]\ninterval = '30s'\n", "\n# settings\n"])
def test_a_file_of_another_kind_is_neither_replaced_nor_removed(tmp_path: Path, text: str) -> None:
    """`--config` is the enrolment, `--settings` the settings: whoever mixes them up must not lose the latter."""
    path = tmp_path / "agent.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match="something else"), open_config_writer(path):
        pass
    with pytest.raises(UsageError, match="something else"):
        remove_config(path)
    assert path.read_text() == text
    for torn in ("", "\0" * 300, ' {"serverUrl'):
        path.write_text(torn)
        assert remove_config(path) is True


def test_where_it_is_kept() -> None:
    database = Path("/var/lib/gua/gua.db")
    assert config_path(None, database, {}) == Path("/var/lib/gua/cloud.json")
    assert config_path(None, database, {"GUA_CONFIG": "/a"}) == Path("/a")
    assert config_path(Path("/b"), database, {"GUA_CONFIG": "/a"}) == Path("/b")


def test_a_prefix_that_tells_the_token_is_cut() -> None:
    def prefix(told: str) -> str:
        return CloudConfig(URL, "h", "n", Token("gua_secret"), told).shown_prefix

    assert (prefix("gua_"), prefix("gua_secret")) == ("gua_", "gua_s")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_who_only_looks_takes_the_enrolment_of_whom_the_folder_belongs_to(tmp_path: Path) -> None:
    path = write_enrolment(tmp_path / "cloud.json", URL)
    os.chown(path, 65534, 65534)
    with pytest.raises(ConfigError, match="belongs to uid 65534"):
        load(path, repair=False)
    os.chown(tmp_path, 65534, 65534)
    assert load(path, repair=False)[0].server_url == URL
    with pytest.raises(ConfigError, match="belongs to uid 65534"):
        load(path, repair=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_who_is_not_root_takes_no_enrolment_of_somebody_else(tmp_path: Path) -> None:
    path = write_enrolment(tmp_path / "cloud.json", URL, mode=0o644)
    os.chown(path, 1234, 1234)
    os.chown(tmp_path, 1234, 1234)
    tmp_path.chmod(0o755)
    handle = os.open(tmp_path, os.O_DIRECTORY)
    os.seteuid(65534)
    try:
        with pytest.raises(ConfigError, match="belongs to uid 1234"):
            load(Path(f"/proc/self/fd/{handle}/cloud.json"), repair=False)
    finally:
        os.seteuid(0)
        os.close(handle)
