from __future__ import annotations

import re
from pathlib import Path

import pytest

from gua.errors import ConfigError
from gua_fleet.config import FILE_ONLY, KEYS, FleetConfig, load_config
from gua_fleet.config_people import EXCUSE_KEYS
from gua_fleet.inventory.hostvars import OURS
from gua_fleet.people import Excuse, UserMap

ROOT = Path(__file__).parent.parent.parent
WHOLE = r"""
hosts: [site/inventory.yml, "gpu9,"]
limit: gpu:!old
vault_password_file: ../secret
timeout: 30s
forks: 8
allow_missing: 2
since: 14d
tz: Europe/Berlin
format: html
width: 100
names: no
rules: idle_pct=5
users:
  alice: [EXAMPLE\alice, "uid:1001@gpu03", container:0a1b*]
  bob: rob
excuses:
  - {user: alice, process: jupyter*, until: 2026-03-01, reason: a course}
  - {host: gpu03, card: "*H100*", until: 2026-03-01T18:00, reason: kept for a demonstration}
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _load(text: str, environ: dict[str, str] | None = None) -> FleetConfig:
    Path("gua-fleet.yml").write_text(text, encoding="utf-8")
    return load_config(environ=environ or {})


def test_load_takes_every_key(tmp_path: Path) -> None:
    config = _load(WHOLE)
    assert config.hosts == (f"{tmp_path}/site/inventory.yml", "gpu9,")
    assert config.vault_password_file == f"{tmp_path}/../secret"
    assert (config.limit, config.timeout_s, config.forks, config.allow_missing) == ("gpu:!old", 30.0, 8, 2)
    assert (config.since, config.tz, config.format, config.width) == ("14d", "Europe/Berlin", "html", 100)
    assert (config.names, config.rules) == (False, "idle_pct=5")
    # the end of the 1st of March, and 18:00 on it, in Berlin, which is an hour ahead then
    assert [excuse.until_ms for excuse in config.excuses] == [1_772_406_000_000, 1_772_384_400_000]
    assert config.excuses[0].reason == "a course"


def test_the_documentation_tells_all_keys_and_its_example_is_right() -> None:
    text = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
    config = _load(re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0])
    assert config.users.person("uid:1001", "gpu03") == "alice"
    assert len(config.excuses) == 2
    keys = {*(key.name for key in KEYS), *FILE_ONLY, *EXCUSE_KEYS}
    assert [key for key in keys if f"`{key}`" not in text] == []
    assert [name for name in OURS if f"`{name}`" not in text] == []


def test_load_without_a_file_gives_the_defaults_that_the_keys_tell() -> None:
    config = load_config(environ={"HOME": "/nowhere", "XDG_CONFIG_HOME": "/nowhere"})
    assert (config, config.file) == (FleetConfig(), None)
    for key in KEYS:
        if key.name in ("timeout", "forks", "allow_missing", "since", "format", "names", "raw_retention"):
            assert config[key.name] == key.parse(key.default)
        else:
            assert not config[key.name]


def test_load_environment_beats_the_file() -> None:
    config = _load("forks: 8\ntimeout: 9s\n", {"GUA_FLEET_FORKS": "3", "GUA_FLEET_NAMES": "false"})
    assert (config.forks, config.timeout_s, config.names) == (3, 9.0, False)
    assert config.origins == {
        "forks": "GUA_FLEET_FORKS",
        "timeout": "gua-fleet.yml:2",
        "names": "GUA_FLEET_NAMES",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("forks: 8\nfroks: 8\n", r"gua-fleet\.yml:2: froks: no such key; known here: hosts, "),
        ("forks: 0\n", r"gua-fleet\.yml:1: forks: 0 does not do; write a whole number, 1 or more"),
        ("forks: true\n", "forks: True does not do"),
        ("\ntimeout: soon\n", r":2: timeout: 'soon' does not do; write a duration"),
        ("tz: Mars/Olympus\n", "write a time zone that this machine knows"),
        ("format: pdf\n", "write one of table, md"),
        ("names: perhaps\n", "write true or false"),
        ("hosts: 5\n", "write an inventory's path"),
        ("limit: [a]\n", "write a text"),
        ("forks: 1\nforks: 2\n", r":2: forks: is there twice, first in line 1"),
        ("a: [\n", r"gua-fleet\.yml:2: not YAML"),
        ("- a\n", "must be settings, written as `name: value` lines"),
        ("x: !!python/object:os.system {}\n", "no such key"),
        ("users: [a]\n", "users: must be people"),
        ("users:\n  a: [x]\n  b:\n  - x\n", r":4: users\.b\[0\]: x is already a \(line 2\)"),
        ("users: {a: [uid:7]}\n", "uid:7 is somebody else on every host; write uid:7@HOST"),
        ("users: {a: [b], b: [c]}\n", "b is itself a name of a"),
        ("users: {a: [{x: 1}]}\n", r"users\.a\[0\]: must be a name"),
        ("excuses: {user: a}\n", "must be a list of excuses"),
        ("excuses:\n- {user: a}\n", r":2: excuses\[0\]: has no reason"),
        ("excuses: [{reason: r}]\n", "would excuse everything"),
        ("excuses: [{user: a, reason: r, until: soon}]\n", r"excuses\[0\]\.until: 'soon' is no day"),
        ("excuses: [{user: a, reason: r, untill: x}]\n", r"excuses\[0\]\.untill: no such key; known here: user, host"),
    ],
)
def test_load_a_mistake_is_one_line_with_file_line_key_and_cure(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        _load(text)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2


def test_load_a_wrong_variable_is_named() -> None:
    with pytest.raises(ConfigError, match="GUA_FLEET_FORKS: 'many' does not do; write a whole number"):
        load_config(environ={"GUA_FLEET_FORKS": "many"})


def test_find_looks_where_it_says_in_that_order(tmp_path: Path) -> None:
    environ = {"GUA_FLEET_CONFIG": "b/own.yml", "XDG_CONFIG_HOME": f"{tmp_path}/xdg"}
    places = ["a/own.yml", "b/own.yml", "gua-fleet.yml", "site/gua-fleet.yml", "xdg/gua-fleet/gua-fleet.yml"]
    for place in places:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).write_text("forks: 1\n")
    found = [load_config("a/own.yml", [Path("site")], environ).file]
    for gone in [None, *places[1:4]]:
        if gone == "b/own.yml":
            del environ["GUA_FLEET_CONFIG"]
        elif gone:
            Path(gone).unlink()
        found.append(load_config(None, [Path("site")], environ).file)
    assert [str(file).removeprefix(f"{tmp_path}/") for file in found] == [*places[:3], *places[3:]]


def test_find_a_named_file_must_be_there() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yml: there is no such settings file \(--config\)"):
        load_config("nowhere.yml", environ={})


def test_find_a_file_that_anybody_may_have_put_there_is_not_believed(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    config = _load("hosts: evil.sh\n")
    assert config.hosts == ()
    assert "everybody may write" in config.warnings[0]


@pytest.mark.parametrize(
    ("user", "host", "person"),
    [
        ("EXAMPLE\\alice", "gpu01", "alice"),
        ("uid:1001", "gpu03", "alice"),
        ("uid:1001@gpu03", "gpu03", "alice"),
        ("uid:1001@gpu03", None, "alice"),
        ("uid:1001", "gpu04", "uid:1001"),
        ("uid:1001@gpu04", "gpu04", "uid:1001@gpu04"),
        ("container:0a1b2c", "gpu04", "alice"),
        ("container:0a1b2c@gpu04", "gpu04", "alice"),
        ("alice@example.com", "gpu04", "alice"),
        ("carol", "gpu04", "carol"),
    ],
)
def test_person_is_found_by_any_of_the_names(user: str, host: str | None, person: str) -> None:
    names = ("EXAMPLE\\alice", "uid:1001@gpu03", "container:0a1b*", "alice@example.com")
    assert UserMap(dict.fromkeys(names, "alice")).person(user, host) == person


def test_excuse_covers_what_all_its_patterns_match_until_it_ends() -> None:
    hold = {"user": "alice", "host": "gpu03", "process": "jupyter-lab", "uuid": "GPU-1", "index": 0, "model": "H100"}
    excuse = Excuse("r", user="alice", process="jupyter*", until_ms=100)
    assert excuse.covers(**hold, at_ms=99)
    assert not excuse.covers(**hold, at_ms=100)
    assert not excuse.covers(**{**hold, "process": "python"}, at_ms=99)
    assert [Excuse("r", card=card).covers(**hold, at_ms=0) for card in ("GPU-1", "0", "H*", "A100")] == [
        True,
        True,
        True,
        False,
    ]
    assert not Excuse("r", card="0").covers(**{**hold, "index": None}, at_ms=0)
