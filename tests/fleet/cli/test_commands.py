"""The commands as a user runs them, on local hosts that a made-up agent answers for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.fleet.ssh.sshd import REPOSITORY, write_agent

READY = 'answer(checks=[{"id": "os", "status": "ok", "summary": "Linux", "cure": None, "details": {}}])'
NOT_READY = """
check = {"id": "driver", "status": "fail", "summary": "no driver", "cure": "load it", "details": {}}
answer(ready=False, checks=[check])
"""
OBSERVATION = """
card = {"uuid": "GPU-1", "index": 0, "name": "H100", "memory_total_mb": 81559, "mig": None}
holder = {"user": "alice", "process": "py\\x1bthon", "pid": 7, "memory_mb": 6144, "type": "compute"}
at = {"at": "2026-03-02T12:00:00Z", "since": "2026-03-02T11:00:00Z"}
now = {"state": "idle-held", "reason": None, "util_pct": 0, "memory_used_mb": 6200, "holders": [holder], **at}
lost = {"state": "unknown", "reason": "card_lost", "util_pct": None, "memory_used_mb": None, "holders": [], **at}
cards = [dict(card, uuid="GPU-2", index=1, now=lost), dict(card, now=now)]
host = dict.fromkeys(("hostname", "store_id", "boot_id", "machine_id", "agent_version"), "x")
answer(schema="gua.observation/1", observed_at=at["at"], status="partial", stored=False, stored_reason="not permitted",
       cards=cards, errors=["card 1 is lost"], push={"mode": "auto", "result": "not-enrolled"},
       host={**host, "driver_version": None, "scheduler": None})
"""


def _inventory(folder: Path, bodies: dict[str, str | None]) -> Path:
    hosts = {}
    for name, body in bodies.items():
        agent = folder / name / "gua"
        if body is not None:
            write_agent(agent, body)
        hosts[name] = {"ansible_connection": "local", "gua_command": str(agent)}
    file = folder / "hosts.yml"
    file.write_text(json.dumps({"all": {"hosts": hosts}}))
    return file


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(str(REPOSITORY / part) for part in ("agent", "fleet"))
    return subprocess.run(
        [sys.executable, "-m", "gua_fleet", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "HOME": str(folder)},
    )


def test_doctor_groups_equal_findings_and_names_the_host_that_did_not_answer(tmp_path: Path) -> None:
    bodies = {"a": READY, "b": NOT_READY, "c": NOT_READY, "d": None}
    done = _run(tmp_path, "doctor", "--hosts", str(_inventory(tmp_path, bodies)))
    assert done.returncode == 1
    assert "4 hosts: 1 ready, 2 not ready (b, c), 1 did not answer (d)" in done.stdout
    assert [line.split()[-2:] for line in done.stdout.splitlines() if line.startswith("fail")] == [["b,", "c"]]
    assert "d     agent-missing" in done.stdout
    assert "Linux" not in done.stdout
    assert f"inventory: {tmp_path}/hosts.yml (--hosts), 4 hosts" in done.stderr


@pytest.mark.parametrize("command", ["status", "report", "free", "holds", "sync-once", "doctor"])
def test_verbose_tells_every_host_that_is_done_and_leaves_the_answer_alone(tmp_path: Path, command: str) -> None:
    inventory = str(_inventory(tmp_path, {"a": READY, "b": None}))
    done = _run(tmp_path, command, "-v", "--json", "--hosts", inventory)
    lines = [line.split()[:3] for line in done.stderr.splitlines() if line[0].isdigit()]
    assert [place for place, *_ in lines] == ["1/2", "2/2"]
    assert [name for _, name, _ in sorted(lines, key=lambda line: line[1])] == ["a:", "b:"]
    assert [host["name"] for host in json.loads(done.stdout)["hosts"]] == ["a", "b"]
    assert "1/2" not in _run(tmp_path, command, "--json", "--hosts", inventory).stderr


def test_doctor_all_ready_exits_0_and_verbose_shows_every_check(tmp_path: Path) -> None:
    done = _run(tmp_path, "doctor", "--verbose", "--hosts", str(_inventory(tmp_path, {"a": READY})))
    assert (done.returncode, "Linux" in done.stdout) == (0, True)


def test_doctor_json_is_one_document_with_every_host(tmp_path: Path) -> None:
    done = _run(tmp_path, "doctor", "--json", "--hosts", str(_inventory(tmp_path, {"a": NOT_READY, "d": None})))
    document = json.loads(done.stdout)
    assert document["schema"] == "gua.fleet-doctor/1"
    assert [(host["name"], host["outcome"]) for host in document["hosts"]] == [("a", "ok"), ("d", "agent-missing")]
    assert document["hosts"][0]["document"]["ready"] is False
    assert document["hosts"][1]["document"] is None


OLDER = """
sys.stdout.write(frame({"schema": "gua.doctor/1", "generated_at": "2026-03-02T12:00:10Z", "ready": True, "checks": []}))
"""
NEWER = """
later = [one for one in DOCUMENTS if one != "gua.report/1"] + ["gua.report/2"]
answer(agent={"version": "9.1", "documents": later})
"""


def test_doctor_names_the_agents_that_this_program_cannot_read_and_those_it_does_not_know(tmp_path: Path) -> None:
    inventory = str(_inventory(tmp_path, {"a": READY, "b": NEWER, "c": OLDER, "d": None}))
    done = _run(tmp_path, "doctor", "--hosts", inventory, "--json", "--allow-missing", "1")
    assert done.returncode == 1
    told = {host["name"]: host["protocol"] for host in json.loads(done.stdout)["hosts"]}
    assert {name: one["readable"] for name, one in told.items()} == {"a": True, "b": False, "c": None, "d": None}
    assert told["b"]["summary"].startswith("agent 9.1 writes gua.report/2; this gua-fleet ")
    assert told["b"]["cure"] == "upgrade gua-fleet here"
    schema = json.loads(files("gua_fleet.schemas").joinpath("gua.fleet-doctor.1.schema.json").read_text())
    Draft202012Validator(schema).validate(json.loads(done.stdout))
    table = _run(tmp_path, "doctor", "--hosts", inventory, "--format", "csv").stdout
    assert [line.split(",")[3:5] for line in table.splitlines() if ",agent," in line] == [
        ["fail", "agent"], ["warn", "agent"],
    ]  # fmt: skip
    assert "4 hosts: 2 ready, 1 not ready (b), 1 did not answer (d)" in _run(tmp_path, "doctor", "-i", inventory).stdout


def test_doctor_nobody_answers_exits_3(tmp_path: Path) -> None:
    assert _run(tmp_path, "doctor", "--hosts", str(_inventory(tmp_path, {"d": None}))).returncode == 3


@pytest.mark.parametrize(("allowed", "exit_status"), [("0", 1), ("1", 0)])
def test_sync_once_shows_the_fleet_now_and_allow_missing_tolerates(
    tmp_path: Path, allowed: str, exit_status: int
) -> None:
    hosts = str(_inventory(tmp_path, {"a": OBSERVATION, "d": None}))
    done = _run(tmp_path, "sync-once", "--hosts", hosts, "--allow-missing", allowed)
    assert done.returncode == exit_status
    rows = [line.split("  ") for line in done.stdout.splitlines() if line.startswith("a ")]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["a", "0", "H100", "idle-held", "0", "6.1 / 80", "alice (py\\x1bthon 6.0 GB)"],
        ["a", "1", "H100", "unknown (card_lost)", "-", "- / 80", "-"],
    ]
    assert "a: not stored there (not permitted)" in done.stdout
    assert "a: card 1 is lost" in done.stdout
    assert "\x1b" not in done.stdout


def test_sync_once_host_that_cannot_measure_is_a_failure(tmp_path: Path) -> None:
    broken = OBSERVATION.replace('"partial"', '"error"').replace("cards=cards", "cards=[]")
    hosts = str(_inventory(tmp_path, {"a": broken, "b": OBSERVATION}))
    assert _run(tmp_path, "sync-once", "--hosts", hosts).returncode == 1


@pytest.mark.parametrize("command", ["hosts", "doctor", "sync-once"])
def test_every_document_fits_its_schema_and_every_field_is_described(tmp_path: Path, command: str) -> None:
    file = _inventory(tmp_path, {"a": OBSERVATION if command == "sync-once" else NOT_READY, "d": None})
    inventory = json.loads(file.read_text())
    inventory["all"]["hosts"] |= {"b c": None, "m": {"gua_maintenance": True, "gua_cards": 8}}
    file.write_text(json.dumps(inventory))
    document = json.loads(_run(tmp_path, command, "--json", "--hosts", str(file)).stdout)
    schema = json.loads(
        files("gua_fleet.schemas").joinpath(f"gua.fleet-{command}.1.schema.json").read_text(encoding="utf-8")
    )
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(document)
    assert set(document) == set(schema["properties"])
    assert set(document["hosts"][0]) == set(schema["properties"]["hosts"]["items"]["properties"])


def test_hosts_shows_what_was_understood_without_connecting(tmp_path: Path) -> None:
    file = tmp_path / "inventory.yml"
    file.write_text('all:\n  hosts:\n    a: {ansible_port: 22}\n    "b c":\n    d: {gua_maintenance: new fans}\n')
    table, document = _run(tmp_path, "hosts"), json.loads(_run(tmp_path, "hosts", "--format", "json").stdout)
    assert table.returncode == 0
    assert "holds blanks" in table.stdout
    assert "maintenance: new fans" in table.stdout
    assert [(host["name"], host["port"]) for host in document["hosts"]] == [("a", 22), ("b c", None), ("d", None)]
    assert "inventory.yml (the default)" in table.stderr


@pytest.mark.parametrize("command", ["hosts", "doctor", "sync-once", "report"])
def test_names_beyond_the_terminals_encoding_are_replaced_and_stay_themselves_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    file = tmp_path / "inventory.yml"
    file.write_text('all:\n  hosts:\n    "čuník": {gua_maintenance: "žádné"}\n', encoding="utf-8")
    done = _run(tmp_path, command)
    assert "?un?k" in done.stdout
    assert "defect" not in done.stderr
    assert json.loads(_run(tmp_path, command, "--json").stdout)["hosts"][0]["name"] == "čuník"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--hosts", "nowhere.yml"], "gua-fleet: no inventory at nowhere.yml"),
        (["--forks", "0"], "must be 1 or more"),
        (["--timeout", "soon"], "not a duration"),
        (["--allow-missing", "-1"], "not a whole number"),
    ],
)
def test_doctor_wrong_options_exit_2_in_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = _run(tmp_path, "doctor", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
