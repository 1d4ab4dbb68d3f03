"""One host's life with the agent: put on it, upgraded, taken back, removed. The tests build on each other, in order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.deployment import Site, look
from tests.lab.harness import Lab
from tests.lab.host import LabHost
from tests.lab.releases import DIES_AFTER_5_S, alter_wheel

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1500)]

NEXT = "0.9.0"  # whatever the checkout's version is, it comes later


@pytest.fixture(scope="module")
def site(lab: Lab) -> Site:
    return Site(lab, "atlas", gua_agent_settle_s=8)


@pytest.fixture(scope="module")
def atlas(site: Site) -> LabHost:
    return site.lab.hosts["atlas"]


def paths(host: LabHost) -> set[str]:
    """What of us lies on the host."""
    places = "/opt/gua /etc/gua /var/lib/gua /usr/local/bin/gua /etc/systemd/system/gua-agent.service"
    return set(host.run("sh", "-c", f"ls -d {places} 2>/dev/null || true").split())


def history(host: LabHost) -> str:
    """The number that names the database for good."""
    return host.run("sh", "-c", "gua report --format json --since 1h --db /var/lib/gua/gua.db").split('"store_id": "')[
        1
    ][:8]


def test_a_rehearsal_on_a_new_host_changes_nothing_and_tells_what_would(site: Site, atlas: LabHost) -> None:
    site.play("wheelhouse.yml", "-e", '{"gua_only": ["3.9", "3.11", "3.13"]}')  # whatever Python the hosts' suite has
    rehearsed = site.play("deploy.yml", "--check", "--diff")
    assert (rehearsed.status, rehearsed.result("atlas")) == (0, "would deploy"), rehearsed.output
    assert paths(atlas) == set()
    deployed = site.play("deploy.yml")
    assert (deployed.status, deployed.result("atlas")) == (0, "deployed"), deployed.output
    assert deployed.changed["atlas"] == rehearsed.changed["atlas"]
    assert look(atlas).version == site.wheel.name.split("-")[1]


def test_a_second_run_and_its_rehearsal_change_nothing(site: Site, atlas: LabHost) -> None:
    before = look(atlas)
    for options in ((), ("--check", "--diff")):
        again = site.play("deploy.yml", *options)
        assert (again.status, again.changed["atlas"], again.result("atlas")) == (0, 0, "unchanged"), again.output
    assert look(atlas) == before


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


def test_a_misspelt_setting_is_named_and_nothing_is_done(site: Site, atlas: LabHost) -> None:
    before = look(atlas)
    run = site.play("deploy.yml", gua_agent_intervl="30s")
    assert (run.status, run.result("atlas")) == (2, "failed")
    assert "No such setting: gua_agent_intervl" in run.rows["atlas"][-1]
    assert look(atlas) == before


def test_an_upgrade_wants_a_version_and_gets_it(site: Site, atlas: LabHost, tmp_path: Path) -> None:
    wheel = alter_wheel(site.wheel, tmp_path, NEXT)
    assert site.play("upgrade.yml", wheel=wheel).status == 2
    assert look(atlas).version != NEXT
    run = site.play("upgrade.yml", wheel=wheel, gua_agent_version=NEXT)
    assert (run.status, run.result("atlas")) == (0, "deployed"), run.output
    assert look(atlas).version == NEXT


def test_an_older_version_is_refused(site: Site, atlas: LabHost) -> None:
    before = look(atlas)
    run = site.play("deploy.yml")
    assert (run.status, run.result("atlas")) == (2, "failed")
    assert f"has {NEXT}, newer than" in run.rows["atlas"][-1]
    assert look(atlas) == before


def test_a_release_that_dies_is_taken_back_and_the_run_fails(site: Site, atlas: LabHost, tmp_path: Path) -> None:
    before, store = look(atlas), history(atlas)
    wheel = alter_wheel(site.wheel, tmp_path, "0.9.1", DIES_AFTER_5_S)
    run = site.play("deploy.yml", wheel=wheel, gua_agent_interval="2s")
    assert (run.status, run.result("atlas")) == (2, "rolled back"), run.output
    assert "the agent is not well" in run.rows["atlas"][-1]
    after = look(atlas)
    assert (after.release, after.version, after.files) == (before.release, before.version, before.files)
    assert history(atlas) == store
    # the good one goes on as if nothing had been
    again = site.play("deploy.yml", wheel=alter_wheel(site.wheel, tmp_path, NEXT))
    assert (again.status, again.changed["atlas"]) == (0, 0), again.output


def test_a_rollback_goes_back_once_and_then_stays(site: Site, atlas: LabHost) -> None:
    before = look(atlas)
    rehearsed = site.play("rollback.yml", "--check")
    assert (rehearsed.status, rehearsed.result("atlas")) == (0, "went back"), rehearsed.output
    assert look(atlas) == before
    run = site.play("rollback.yml")
    assert (run.status, run.result("atlas")) == (0, "went back"), run.output
    after = look(atlas)
    assert (before.version, after.version) == (NEXT, site.wheel.name.split("-")[1])
    again = site.play("rollback.yml")
    assert (again.status, again.changed["atlas"], again.result("atlas")) == (0, 0, "unchanged"), again.output
    assert look(atlas) == after


def test_the_status_is_read_and_tells_who_is_not_well(site: Site, atlas: LabHost, tmp_path: Path) -> None:
    run = site.play("status.yml", gua_status_json=str(tmp_path / "status.json"))
    assert (run.status, run.changed["atlas"], run.result("atlas")) == (0, 0, "well"), run.output
    [told] = json.loads((tmp_path / "status.json").read_text())
    assert (told["host"], told["healthy"], told["last_tick_status"]) == ("atlas", True, "ok")
    atlas.run("systemctl", "stop", "gua-agent")
    stopped = site.play("status.yml")
    assert (stopped.status, stopped.result("atlas")) == (2, "not well")
    assert "the unit is inactive" in stopped.rows["atlas"][-1]


def test_removal_keeps_the_history_until_it_is_told_otherwise(site: Site, atlas: LabHost) -> None:
    run = site.play("undeploy.yml")
    assert (run.status, run.result("atlas")) == (0, "removed"), run.output
    assert paths(atlas) == {"/etc/gua", "/var/lib/gua"}
    again = site.play("undeploy.yml")
    assert (again.status, again.changed["atlas"], again.result("atlas")) == (0, 0, "unchanged"), again.output
    assert site.play("undeploy.yml", gua_agent_purge="true").status == 0
    assert paths(atlas) == set()
    assert "gua" not in atlas.run("cut", "-d:", "-f1", "/etc/passwd").split()
    fresh = site.play("deploy.yml")
    assert (fresh.status, fresh.result("atlas")) == (0, "deployed"), fresh.output
