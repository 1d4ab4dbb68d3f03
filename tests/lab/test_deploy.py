"""One host's life with the agent: put on it, enrolled, upgraded, taken back, removed. The tests build on each other, in
order. As short as that can be: every landing runs them; what is left out of them is in the test_*_full files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.board import Board
from tests.lab.board import ENVIRONMENT, lab_board
from tests.lab.deployment import Site, look, paths
from tests.lab.harness import Lab
from tests.lab.host import LabHost
from tests.lab.releases import EXITS, alter_wheel
from tests.lab.tokens import Vault, assert_unseen, leave_no_pipelining

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1500)]

NEXT = "0.9.0"  # whatever the checkout's version is, it comes later


@pytest.fixture(scope="module")
def site(lab: Lab) -> Site:
    return Site(lab, "atlas", gua_agent_settle_s=2, gua_agent_environment=ENVIRONMENT)


@pytest.fixture(scope="module")
def atlas(site: Site) -> LabHost:
    return site.lab.hosts["atlas"]


@pytest.fixture(scope="module")
def board(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    with lab_board(site.lab, tmp_path_factory.mktemp("board")) as board:
        yield board


def test_a_rehearsal_on_a_new_host_changes_nothing_and_tells_what_would(site: Site, atlas: LabHost) -> None:
    rehearsed = site.play("deploy.yml", "--check", "--diff")
    assert (rehearsed.status, rehearsed.result("atlas")) == (0, "would deploy"), rehearsed.output
    assert paths(atlas) == set()
    deployed = site.play("deploy.yml")
    assert (deployed.status, deployed.result("atlas")) == (0, "deployed"), deployed.output
    assert deployed.changed["atlas"] == rehearsed.changed["atlas"]
    assert look(atlas).version == site.version


def test_the_service_user_owns_its_history_and_nothing_else_of_ours(atlas: LabHost) -> None:
    owners = atlas.run(
        "stat", "-c", "%U:%G %a %n", "/opt/gua", "/etc/gua/agent.toml", "/var/lib/gua", "/var/lib/gua/gua.db"
    )
    assert owners.splitlines() == [
        "root:root 755 /opt/gua",
        "root:root 644 /etc/gua/agent.toml",
        "gua:gua 750 /var/lib/gua",
        "gua:gua 640 /var/lib/gua/gua.db",
    ]
    assert atlas.run("find", "/opt/gua", "!", "-user", "root", "-o", "-perm", "/022", "!", "-type", "l") == ""


def test_a_token_is_used_once_and_seen_nowhere(
    site: Site, atlas: LabHost, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault(tmp_path, monkeypatch)
    leave_no_pipelining(monkeypatch)
    token = "gua_once_6f1d0c93aa"
    board.one_time.add(token)
    given = ("-vvv", "--diff", *vault.options({"atlas": token}))
    first = site.play("enroll.yml", *given, gua_agent_server_url=board.url)
    assert (first.status, first.result("atlas"), board.one_time) == (0, "enrolled", set()), first.output
    # the module with its input never was a file on the host, though the site's own settings would have had it so
    swap = first.output.partition("TASK [gua_agent : The token is swapped")[2].partition("TASK [")[0]
    assert ("EXEC" in swap, "PUT" in swap) == (True, False)
    assert atlas.run("stat", "-c", "%U %a", "/var/lib/gua/cloud.json").strip() == "gua 600"
    wait_for_states(board, 2)
    assert board.violations == []
    before = look(atlas)
    again = site.play("enroll.yml", *given, gua_agent_server_url=board.url)
    assert (again.status, again.changed["atlas"], again.result("atlas")) == (0, 0, "unchanged"), again.output
    assert look(atlas) == before
    assert_unseen([token, *board.agents], first.output + again.output, atlas)


def test_a_second_deployment_changes_nothing(site: Site, atlas: LabHost) -> None:
    before = look(atlas)
    again = site.play("deploy.yml")
    assert (again.status, again.changed["atlas"], again.result("atlas")) == (0, 0, "unchanged"), again.output
    assert look(atlas) == before


def test_an_upgrade_gets_the_version_that_was_named_and_stays_enrolled(
    site: Site, atlas: LabHost, board: Board, tmp_path: Path
) -> None:
    run = site.play("upgrade.yml", wheel=alter_wheel(site.wheel, tmp_path, NEXT), gua_agent_version=NEXT)
    assert (run.status, run.result("atlas")) == (0, "deployed"), run.output
    assert look(atlas).version == NEXT
    wait_for_states(board, 1)
    assert board.taken[-1]["host"]["agentVersion"] == NEXT


def test_a_release_that_does_not_come_up_is_taken_back_and_the_run_fails(
    site: Site, atlas: LabHost, tmp_path: Path
) -> None:
    before = look(atlas)
    run = site.play("deploy.yml", wheel=alter_wheel(site.wheel, tmp_path, "0.9.1", EXITS), gua_agent_interval="2s")
    assert (run.status, run.result("atlas")) == (2, "rolled back"), run.output
    assert "the agent is not well" in run.rows["atlas"][-1]
    after = look(atlas)
    assert (after.release, after.version, after.files) == (before.release, before.version, before.files)


def test_a_rollback_goes_back_once_and_then_stays(site: Site, atlas: LabHost) -> None:
    run = site.play("rollback.yml")
    assert (run.status, run.result("atlas")) == (0, "went back"), run.output
    after = look(atlas)
    assert after.version == site.version
    again = site.play("rollback.yml")
    assert (again.status, again.changed["atlas"], again.result("atlas")) == (0, 0, "unchanged"), again.output
    assert look(atlas) == after


def test_the_status_is_read_and_written_down(site: Site, tmp_path: Path) -> None:
    run = site.play("status.yml", gua_status_json=str(tmp_path / "status.json"))
    assert (run.status, run.changed["atlas"], run.result("atlas")) == (0, 0, "well"), run.output
    [told] = json.loads((tmp_path / "status.json").read_text())
    assert (told["host"], told["healthy"], told["last_tick_status"], told["enrolled"]) == ("atlas", True, "ok", True)
    assert told["board"]["last_accepted_at"] is not None, told
    assert told["accepted"].startswith("last accepted "), told
    assert told["accepted"] in run.rows["atlas"][-1], run.output


def test_removal_keeps_the_history(site: Site, atlas: LabHost) -> None:
    run = site.play("undeploy.yml")
    assert (run.status, run.result("atlas")) == (0, "removed"), run.output
    assert paths(atlas) == {"/etc/gua", "/var/lib/gua", "gua"}
    again = site.play("undeploy.yml")
    assert (again.status, again.changed["atlas"], again.result("atlas")) == (0, 0, "unchanged"), again.output


def wait_for_states(board: Board, count: int, deadline_s: float = 120) -> None:
    """Until the board took that many more."""
    goal, end = len(board.taken) + count, time.monotonic() + deadline_s
    while len(board.taken) < goal:
        assert time.monotonic() < end, f"the board took no {count} states within {deadline_s:.0f} s"
        time.sleep(0.2)
