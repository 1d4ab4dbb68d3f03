"""`gua-fleet sync-once`: measuring, storing and pushing told apart, and what is kept of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gua_fleet.last_seen import load_seen
from gua_fleet.latest import load_latest, save_latest
from gua_fleet.model import Host, HostResult, Outcome
from tests.fleet.cli.test_commands import OBSERVATION, _inventory, _run

PAUSED = """
sys.stdout.write(frame({"schema": "gua.error/1", "code": "paused", "message": "paused by root", "exit_status": 4}))
sys.exit(4)
"""
PUSH_FAILED = OBSERVATION.replace('"not-enrolled"', '"failed", "reason": "no board"').replace(
    "stored=False", "stored=True"
)
FULL = OBSERVATION.replace('"not permitted"', '"disk full", store_failed=True')


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.processes
def test_measuring_storing_and_pushing_are_told_apart_and_a_pause_is_no_failure(tmp_path: Path) -> None:
    hosts = str(_inventory(tmp_path, {"a": OBSERVATION, "p": PAUSED, "f": PUSH_FAILED, "d": FULL}))
    done = _run(tmp_path, "sync-once", "--hosts", hosts)
    assert done.stdout.splitlines()[0] == (
        "4 hosts: 3 measured, 1 paused (p); stored on 1, failed on 1 (d); push: 2 not-enrolled, 1 failed"
    )
    assert "p     paused   paused by root" in done.stdout
    assert "f: push failed (no board)" in done.stdout
    assert "d: storing failed there (disk full)" in done.stdout
    assert "a: not stored there (not permitted)" in done.stdout
    assert done.returncode == 1
    assert _run(tmp_path, "sync-once", "--hosts", hosts, "--limit", "a,p").returncode == 0


@pytest.mark.processes
def test_what_a_host_said_is_kept_for_this_user_alone_and_told_when_it_is_silent(tmp_path: Path) -> None:
    hosts = str(_inventory(tmp_path, {"a": OBSERVATION}))
    assert _run(tmp_path, "sync-once", "--hosts", hosts).returncode == 0
    kept = sorted((tmp_path / "state" / "gua-fleet").rglob("*.json"))
    assert [(path.parent.name, path.stat().st_mode & 0o777) for path in kept] == [
        ("gua-fleet", 0o600),
        ("latest", 0o600),
    ]
    assert kept[1].parent.stat().st_mode & 0o777 == 0o700
    (tmp_path / "a" / "gua").unlink()
    done = _run(tmp_path, "sync-once", "--hosts", hosts)
    assert done.returncode == 3
    assert "a: not counted above; 2026-03-02 12:00 UTC it had 1 idle-held, 1 unknown" in done.stdout
    assert "2026-03-02 12:00" in next(line for line in done.stdout.splitlines() if "agent-missing" in line)


@pytest.mark.processes
@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_no_names_leaves_no_name(tmp_path: Path, form: str) -> None:
    hosts = str(_inventory(tmp_path, {"a": OBSERVATION, "p": PAUSED}))
    done = _run(tmp_path, "sync-once", "--hosts", hosts, "--no-names", "--format", form)
    assert done.returncode == 0
    assert "user 1" in done.stdout
    assert "alice" not in done.stdout
    assert "root" not in done.stdout


def test_latest_state_of_another_machine_of_the_same_name_or_a_broken_one_is_not_taken(tmp_path: Path) -> None:
    document = {
        "schema": "gua.observation/1",
        "observed_at": "2026-03-02T12:00:00Z",
        "status": "ok",
        "stored": True,
        "stored_reason": None,
        "push": {"mode": "auto", "result": "not-enrolled"},
        "host": {**dict.fromkeys(("hostname", "store_id", "boot_id", "machine_id", "agent_version"), "x")}
        | {"driver_version": None, "scheduler": None},
        "cards": [],
        "errors": [],
    }
    here, other = Host("../a", "10.0.0.1"), Host("../a", "10.0.0.2")
    save_latest(tmp_path / "latest", [HostResult(here, Outcome.OK, document=document)])
    assert load_latest(tmp_path / "latest", [here]) == {"../a": document}
    assert load_latest(tmp_path / "latest", [other]) == {}
    (file,) = (tmp_path / "latest").iterdir()
    for broken in (b"", b"{}", b"[1]", json.dumps({"version": 1, "asked": "x", "document": {}}).encode(), b"\xff"):
        file.write_bytes(broken)
        assert load_latest(tmp_path / "latest", [here]) == {}
    assert load_seen(tmp_path / "latest", [here]) == {}
