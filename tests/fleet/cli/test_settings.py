"""A configured directory: gua-fleet.yml, the environment and flags as a user meets them; passwords at a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gua_fleet.config import KEYS
from tests.fleet.cli.test_commands import READY, _inventory, _run
from tests.fleet.cli.test_stored import fits
from tests.fleet.inventory.ansible_says import ANSIBLE
from tests.fleet.ssh.sshd import REPOSITORY

YAML = "hosts: site/hosts.json\nlimit: a?\nallow_missing: 1\ntimeout: 30s\nusers: {alice: [al]}\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    _inventory(tmp_path / "site", {"a1": READY, "a2": None, "b": READY}).rename(tmp_path / "site/hosts.json")
    (tmp_path / "gua-fleet.yml").write_text(YAML)
    return tmp_path


def test_a_command_alone_works_in_a_configured_directory(site: Path) -> None:
    done = _run(site, "doctor", "--json")
    assert [host["name"] for host in json.loads(done.stdout)["hosts"]] == ["a1", "a2"]
    assert done.returncode == 0  # one is missing, and one may be
    assert f"inventory: {site}/site/hosts.json (gua-fleet.yml), 2 hosts" in done.stderr


def test_flags_beat_the_environment_and_that_beats_the_file(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUA_FLEET_LIMIT", "b")
    assert [host["name"] for host in json.loads(_run(site, "hosts", "--json").stdout)["hosts"]] == ["b"]
    done = _run(site, "hosts", "--json", "--limit", "a2", "-i", "site/hosts.json", "-e", "gua_cards=8")
    assert [(host["name"], host["cards"]) for host in json.loads(done.stdout)["hosts"]] == [("a2", 8)]


def test_the_file_beside_the_inventory_counts_from_elsewhere(site: Path) -> None:
    (site / "gua-fleet.yml").rename(site / "site/gua-fleet.yml")
    done = _run(site, "config", "show", "--hosts", "site/hosts.json")
    assert [line.split() for line in done.stdout.splitlines() if line.startswith("forks")] == [
        ["forks", "32", "default"]
    ]
    limit = next(line for line in done.stdout.splitlines() if line.startswith("limit"))
    assert limit.split()[1:] == ["a?", f"{site}/site/gua-fleet.yml:2"]


def test_config_show_writes_a_duration_as_the_file_does(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUA_FLEET_TIMEOUT", "1500ms")
    rows = [line.split()[:2] for line in _run(site, "config", "show").stdout.splitlines()]
    assert ["raw_retention", "30d"] in rows
    assert ["timeout", "1500ms"] in rows


def test_config_show_as_a_document_tells_value_unit_and_source(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUA_FLEET_RAW_RETENTION", "2h")
    monkeypatch.setenv("GUA_FLEET_STORE", "postgresql://gua:s3cret@db/gua")
    done = _run(site, "config", "show", "--json", "--limit", "b")
    document = json.loads(done.stdout)
    fits("gua.fleet-config.1", document)
    settings = document["settings"]
    assert set(settings) == {key.field for key in KEYS}
    assert settings["timeout_s"] == {"value": 30.0, "source": "file", "where": "gua-fleet.yml:4"}
    assert settings["raw_retention_s"] == {"value": 7200.0, "source": "environment", "where": "GUA_FLEET_RAW_RETENTION"}
    assert settings["forks"] == {"value": 32, "source": "default", "where": None}
    assert settings["limit"] == {"value": "b", "source": "option", "where": "--limit"}
    assert document["users"] == [{"person": "alice", "names": ["al"]}]
    assert settings["store"]["value"] == "postgresql://gua:***@db/gua"
    for form in ("json", "table", "csv", "md"):
        assert "s3cret" not in _run(site, "config", "show", "--format", form).stdout


def test_config_check_names_file_line_key_and_cure_or_says_it_is_right(site: Path) -> None:
    good = _run(site, "config", "check")
    assert (good.returncode, good.stdout) == (0, "gua-fleet.yml: right; 1 name mapped, 0 excuses\n")
    (site / "gua-fleet.yml").write_text(YAML + "froks: 3\n")
    for command in (("config", "check"), ("report",)):
        bad = _run(site, *command)
        assert bad.returncode == 2
        assert bad.stderr.startswith("gua-fleet: gua-fleet.yml:6: froks: no such key; known here: hosts,")
    assert _run(site, "version").returncode == 0


def test_a_file_that_begins_with_a_byte_order_mark_is_read(site: Path) -> None:
    (site / "gua-fleet.yml").write_text("\ufeff" + YAML, encoding="utf-8")
    assert _run(site, "config", "check").stdout == "gua-fleet.yml: right; 1 name mapped, 0 excuses\n"


def test_passwords_are_never_asked_where_nobody_is(site: Path) -> None:
    for option, words in (("--ask-pass", "SSH password"), ("-K", "sudo password"), ("-J", "vault password")):
        # an inventory that needs no vault does not make the question needless: it was asked to be asked
        done = subprocess.run(
            [sys.executable, "-m", "gua_fleet", "doctor", option],
            capture_output=True,
            text=True,
            cwd=site,
            stdin=subprocess.DEVNULL,
            env=_environ(site),
        )
        assert done.returncode == 2
        assert f"gua-fleet: {words}: there is no terminal to ask at; " in done.stderr
        assert done.stdout == ""


def test_a_vault_password_typed_at_a_terminal_opens_the_vault_and_is_shown_nowhere(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("t0p\n")
    command = [ANSIBLE / "ansible-vault", "encrypt_string", "--vault-password-file", "pw", "hidden", "--name", "v"]
    vaulted = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.partition(": ")[
        2
    ]
    (tmp_path / "inventory.yml").write_text(
        "all:\n  hosts:\n    a:\n      ansible_user: " + vaulted.replace("\n          ", "\n        ")
    )
    said, document = _at_a_terminal(tmp_path, "t0p", ["hosts", "--ask-vault-pass", "--json"])
    assert document["hosts"][0]["user"] == "hidden"
    assert "t0p" not in said


def _environ(folder: Path) -> dict[str, str]:
    path = os.pathsep.join(str(REPOSITORY / part) for part in ("agent", "fleet"))
    return {**os.environ, "PYTHONPATH": path, "HOME": str(folder)}


def _at_a_terminal(folder: Path, typed: str, arguments: list[str]) -> tuple[str, dict[str, object]]:
    """What the terminal showed and the document on standard output, when `typed` answers the first question."""
    ours, theirs = os.openpty()
    program = (
        "import os, sys\n"
        f"os.dup2(os.open({os.ttyname(theirs)!r}, os.O_RDWR), 0)\n"  # a session leader's first terminal is its own
        "from gua_fleet.__main__ import main\n"
        f"sys.exit(main({arguments!r}))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=folder,
        env=_environ(folder),
        start_new_session=True,
    ) as process:
        said = b""
        while not said.rstrip().endswith(b"password:"):
            said += os.read(ours, 1000)
        # the prompt is written after the echo is off
        os.write(ours, typed.encode() + b"\n")
        assert process.stdout is not None
        document = json.loads(process.stdout.read())
    os.set_blocking(ours, False)
    with contextlib.suppress(BlockingIOError):
        said += os.read(ours, 10_000)
    os.close(ours)
    os.close(theirs)
    return said.decode(), document
