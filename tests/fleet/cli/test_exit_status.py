"""What a script learns from each command that asks hosts: 0, 1, 2 or 3, and from nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.cli.conftest import Command
from tests.fleet.cli.reporting import fleet_of, reporting_body
from tests.fleet.cli.test_commands import NOT_READY, OBSERVATION, READY, _inventory

ASKING = ("doctor", "status", "sync-once", "report", "free", "holds", "top")
IDLE = {"state": "truly-idle", "since_s": 7200}


def _answering(folder: Path) -> str:
    """An inventory of `a`, whose agent answers whatever it is asked, and of `gone`, which has none."""
    hosts = fleet_of(folder, {"a": [IDLE], "gone": None})
    reporting = reporting_body(folder, "a")
    bodies = {"doctor": READY, "sync-once": OBSERVATION, "report": reporting, "status": reporting}
    branches = [f"if sys.argv[1] == {word!r}:\n    exec({body!r})" for word, body in bodies.items()]
    _inventory(folder, {"a": "\n".join(branches), "gone": None})
    return hosts


@pytest.mark.processes
@pytest.mark.parametrize("name", ASKING)
def test_it_tells_how_many_answered(tmp_path: Path, command: Command, name: str) -> None:
    hosts = _answering(tmp_path)
    assert command(name, "--hosts", hosts).status == 1
    assert command(name, "--hosts", hosts, "--allow-missing", "1").status == 0
    assert command(name, "--hosts", hosts, "--limit", "gone", "--allow-missing", "1").status == 3


@pytest.mark.parametrize("name", [*ASKING, "hosts"])
@pytest.mark.parametrize("wrong", [("--hosts", "nowhere.yml"), ("--config", "nowhere.yml"), ("--nonsense",)])
def test_what_cannot_be_begun_is_2_and_one_line(command: Command, name: str, wrong: tuple[str, ...]) -> None:
    done = command(name, *wrong)
    assert (done.status, done.out) == (2, "")
    assert len([line for line in done.err.splitlines() if line.startswith("gua-fleet")]) == 1
    assert "Traceback" not in done.err


@pytest.mark.parametrize("name", ["doctor", "free"])
def test_a_fleet_that_is_left_alone_did_not_answer(tmp_path: Path, command: Command, name: str) -> None:
    (tmp_path / "inventory.yml").write_text("all: {hosts: {a: {gua_maintenance: new fans}}}")
    done = command(name)
    assert done.status == 3
    assert "new fans" in done.out


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("doctor", NOT_READY),
        ("sync-once", OBSERVATION.replace('"not-enrolled"', '"failed", "reason": "no board"')),
        ("sync-once", OBSERVATION.replace('"not permitted"', '"disk full", store_failed=True')),
        ("sync-once", OBSERVATION.replace('"partial"', '"error"').replace("cards=cards", "cards=[]")),
        (
            "status",
            'sys.stdout.write(frame({"schema": "gua.error/1", "code": "database_missing", "message": "no database"}))',
        ),
    ],
)
def test_bad_news_is_1_however_many_may_be_missing(tmp_path: Path, command: Command, name: str, body: str) -> None:
    hosts = str(_inventory(tmp_path, {"a": body}))
    assert command(name, "--hosts", hosts, "--allow-missing", "9").status == 1


def test_hosts_asks_nobody(tmp_path: Path, command: Command) -> None:
    assert command("hosts", "--hosts", str(_inventory(tmp_path, {"gone": None}))).status == 0
