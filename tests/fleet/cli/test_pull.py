"""`gua-fleet pull` as a user runs it: what it prints, what it ends with, and whose the store is."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.agent.export.test_stream import history
from tests.fleet.ssh.sshd import REPOSITORY

pytestmark = pytest.mark.processes


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """`good` has a history, `gone` no agent."""
    database = history(tmp_path / "gua.db", 0, 20)
    agent = tmp_path / "gua"
    agent.write_text(f'#!/bin/sh\nexec {sys.executable} -m gua "$@" --db {database}\n')
    agent.chmod(0o755)
    hosts = {
        name: {"ansible_connection": "local", "gua_command": str(command)}
        for name, command in (("good", agent), ("gone", tmp_path / "not-there"))
    }
    path = tmp_path / "hosts.yml"
    path.write_text(json.dumps({"all": {"hosts": hosts}}))
    return path


def run(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(str(REPOSITORY / part) for part in ("agent", "fleet"))
    return subprocess.run(
        [sys.executable, "-m", "gua_fleet", "pull", "--timeout", "60s", *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "HOME": str(folder), "XDG_DATA_HOME": "", **environ},
    )


def test_it_says_what_came_of_every_host_and_the_store_is_its_users_alone(tmp_path: Path, inventory: Path) -> None:
    said = run(tmp_path, "-i", str(inventory))
    store = tmp_path / ".local/share/gua/fleet.db"
    assert said.returncode == 1, said.stderr
    assert said.stdout.startswith("1 of 2 hosts pulled, 1 failed: ")
    assert f"into {store}" in said.stdout
    assert "no agent at" in said.stdout
    assert (store.stat().st_mode & 0o777, store.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    again = run(tmp_path, "-i", str(inventory), "--json", "--limit", "good", "--rollups-only")
    assert again.returncode == 0, again.stderr
    document = json.loads(again.stdout)
    schema = json.loads(files("gua_fleet.schemas").joinpath("gua.fleet-pull.1.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(document)
    assert document["hosts"][0]["pulled"]["since_rev"] == document["hosts"][0]["pulled"]["rev"] > 2
    connection = sqlite3.connect(store)
    outcomes = dict(connection.execute("SELECT name, outcome FROM host").fetchall())
    connection.close()
    assert outcomes == {"good": "ok", "gone": "agent-missing"}


def test_single_ticks_of_a_host_that_answers_no_more_are_kept_no_longer_than_others(
    tmp_path: Path, inventory: Path
) -> None:
    store = tmp_path / "fleet.db"
    here = ("-i", str(inventory), "--store", str(store))
    assert run(tmp_path, *here, "--raw-retention", "99999d").returncode == 1
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE tick SET ts_ms = 5 * id WHERE id <= 10")  # of 1970, whatever the year is now
        assert connection.execute("SELECT count(*) FROM tick").fetchone() == (20,)
    (tmp_path / "gua").write_text("#!/bin/sh\nexit 77\n")
    assert run(tmp_path, *here, "--limit", "gone", "--raw-retention", "9999d").returncode == 3
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(*) FROM tick").fetchone() == (20,)  # nobody asked for that host
    assert run(tmp_path, *here, "--raw-retention", "9999d").returncode != 0
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(*) FROM tick").fetchone() == (10,)
        assert connection.execute("SELECT sum(ticks) FROM tick_day").fetchone() == (20,)


def test_nobody_answers_is_3_and_a_store_that_cannot_be_used_is_2(tmp_path: Path, inventory: Path) -> None:
    assert run(tmp_path, "-i", str(inventory), "--limit", "gone").returncode == 3
    (tmp_path / "text").write_text("no database " * 100)
    for store, words in (
        ("text", "not a database"),
        ("mysql://u:secret@h/d", "a store is a file, or postgresql://USER@HOST/DATABASE"),
        ("postgresql://u:secret@127.0.0.1:1/d", "postgresql://u:***@127.0.0.1:1/d: "),
    ):
        said = run(tmp_path, "-i", str(inventory), "--store", store)
        assert said.returncode == 2, said.stdout
        assert words in said.stderr
        assert "secret" not in said.stdout + said.stderr
        assert "Traceback" not in said.stderr


def test_settings_name_the_store_and_a_newer_one_is_refused(tmp_path: Path, inventory: Path) -> None:
    (tmp_path / "gua-fleet.yml").write_text("store: kept/fleet.db\nhosts: hosts.yml\nlimit: good\n")
    assert run(tmp_path).returncode == 0
    store = tmp_path / "kept/fleet.db"
    connection = sqlite3.connect(store)
    connection.execute("UPDATE migration SET version = 99")
    connection.commit()
    before = connection.execute("SELECT rev FROM history").fetchall()
    said = run(tmp_path)
    assert said.returncode == 2
    assert "was written by a newer gua-fleet (schema 99, this one knows 1): update gua-fleet here" in said.stderr
    assert connection.execute("SELECT rev FROM history").fetchall() == before
    connection.close()


def test_a_store_that_fails_when_all_is_in_ends_with_2_and_costs_no_word_on_what_came(
    tmp_path: Path, inventory: Path
) -> None:
    store = tmp_path / "fleet.db"
    options = ("-i", str(inventory), "--limit", "good", "--store", str(store))
    assert run(tmp_path, *options).returncode == 0
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE UPDATE OF asked_ms ON host BEGIN SELECT RAISE(FAIL, 'disk is full'); END"
        )
    said = run(tmp_path, *options)
    assert said.returncode == 2
    assert said.stdout.startswith("1 of 1 host pulled")
    assert "disk is full: make room there" in said.stderr
    assert "Traceback" not in said.stderr
