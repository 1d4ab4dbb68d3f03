"""Deployments that take too long for every landing: failures, hostile hosts, ten hosts, every suite, enrolment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.lab.conftest import lab_or_skip
from tests.lab.deployment import Run, Site, look
from tests.lab.harness import Lab
from tests.lab.host import LabHost
from tests.lab.releases import DIES_AFTER_5_S, EXITS, IS_UNHEALTHY, alter_wheel

pytestmark = [
    pytest.mark.lab,
    pytest.mark.lab_full,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(os.environ.get("GUA_LAB_FULL") != "1", reason="takes long: `make test-lab` runs it"),
]

QUICK = {"gua_agent_settle_s": 2, "gua_agent_verify_timeout_s": 30}
TEN = tuple(f"host{number}" for number in range(10))


@pytest.fixture(scope="module")
def site(lab: Lab) -> Site:
    site = Site(lab, "atlas", **QUICK)
    run = site.play("deploy.yml")
    assert run.status == 0, run.output
    return site


@pytest.fixture(scope="module")
def atlas(site: Site) -> LabHost:
    return site.lab.hosts["atlas"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (EXITS, "the unit is"),
        (DIES_AFTER_5_S, "s of being well"),
        (IS_UNHEALTHY, "clock: made to fail"),
    ],
    ids=["exits", "dies", "unhealthy"],
)
def test_what_does_not_come_up_is_taken_back(
    site: Site, atlas: LabHost, tmp_path: Path, changes: dict[str, str], reason: str
) -> None:
    before = look(atlas)
    run = site.play("deploy.yml", wheel=alter_wheel(site.wheel, tmp_path, "0.9.9", changes), gua_agent_settle_s="10")
    assert (run.status, run.result("atlas")) == (2, "rolled back"), run.output
    assert reason in run.rows["atlas"][-1] or "the unit is" in run.rows["atlas"][-1]
    after = look(atlas)
    assert (after.release, after.files) == (before.release, before.files)


def test_settings_that_the_agent_refuses_never_reach_it(site: Site, atlas: LabHost) -> None:
    before = look(atlas)
    run = site.play("deploy.yml", gua_agent_interval="soon")
    assert (run.status, run.result("atlas")) == (2, "failed"), run.output
    assert look(atlas) == before


def test_a_half_built_release_and_a_broken_one_are_built_anew(site: Site, atlas: LabHost) -> None:
    release = look(atlas).release
    for damage in (f"rm {release}/.complete", f"rm {release}/bin/python"):
        atlas.run("sh", "-c", damage)
        run = site.play("deploy.yml")
        assert (run.status, run.changed["atlas"] > 0) == (0, True), run.output
        assert look(atlas).release == release


def test_a_host_with_no_room_is_told_so_before_anything_is_built(site: Site, atlas: LabHost, tmp_path: Path) -> None:
    atlas.run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/opt")
    try:
        run = site.play("deploy.yml", wheel=alter_wheel(site.wheel, tmp_path, "0.9.8"))
        assert run.status == 2
        assert "make room there" in run.output
        assert atlas.run("ls", "/opt") == ""
    finally:
        atlas.run("umount", "/opt")


def test_a_host_that_is_shut_tight_is_served(lab: Lab, site: Site, tmp_path: Path) -> None:
    tight = Site(lab, "boreas", **QUICK)
    host = lab.hosts["boreas"]
    host.run("sh", "-c", "echo 'umask 077' >>/etc/profile; sed -i 's/^UMASK.*/UMASK 077/' /etc/login.defs")
    host.run("mount", "-t", "tmpfs", "-o", "noexec", "tmpfs", "/tmp")
    host.run("mount", "-o", "remount,hidepid=2", "/proc")
    run = tight.play("deploy.yml", "--limit", "boreas")
    assert (run.status, run.result("boreas")) == (0, "deployed"), run.output
    assert "hidepid=" in run.rows["boreas"][-1]
    assert look(host).version


def test_a_host_whose_python_is_too_old_names_the_cure(site: Site, atlas: LabHost) -> None:
    run = site.play("preflight.yml", gua_agent_python="python3.6")
    assert (run.status, run.result("atlas")) == (2, "failed")
    assert "has no Python 3.9 to 3.13" in run.rows["atlas"][-1]
    assert "Cure: " in run.rows["atlas"][-1]


def test_ten_hosts_stop_at_a_broken_canary_and_at_a_failure_in_the_second_batch() -> None:
    with lab_or_skip() as lab:
        site = Site(lab, *TEN, **QUICK)
        library = Path("/usr/lib/libnvidia-ml.so.1")
        for broken, expected in (
            ("host0", {"host0": "rolled back"}),
            ("host1", {"host0": "deployed", "host1": "rolled back", "host2": "deployed"}),
        ):
            place = lab.hosts[broken].path(str(library))
            kept = place.read_bytes()
            place.unlink()
            run = site.play("deploy.yml")
            assert run.status == 2
            assert {name: run.result(name) for name in TEN if run.result(name) != "not touched"} == expected, run.output
            assert touched(lab) == {name for name, result in expected.items() if result == "deployed"}
            place.write_bytes(kept)
        assert_all_deployed(site.play("deploy.yml"))
        assert touched(lab) == set(TEN)


def touched(lab: Lab) -> set[str]:
    """Hosts on which an agent runs now."""
    return {name for name, host in lab.hosts.items() if os.path.lexists(host.path("/opt/gua/current"))}


def assert_all_deployed(run: Run) -> None:
    assert run.status == 0, run.output
    assert {run.result(name) for name in run.rows} <= {"deployed", "unchanged"}


@pytest.mark.parametrize("suite", ["bullseye", "bookworm", "trixie"])
def test_every_suite_takes_the_agent_and_loses_it(suite: str) -> None:
    if shutil.which("debootstrap") and not Path(f"/usr/share/debootstrap/scripts/{suite}").exists():
        pytest.skip(f"this debootstrap does not know {suite}")
    with lab_or_skip(suite) as lab:
        site = Site(lab, "atlas", **QUICK)
        rehearsed = site.play("deploy.yml", "--check", "--diff")
        assert rehearsed.status == 0, rehearsed.output
        for result in ("deployed", "unchanged"):
            run = site.play("deploy.yml")
            assert (run.status, run.result("atlas")) == (0, result), run.output
        assert site.play("status.yml").result("atlas") == "well"
        assert site.play("undeploy.yml").result("atlas") == "removed"


def test_a_token_is_used_once_and_seen_nowhere(
    site: Site, atlas: LabHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = alter_wheel(site.wheel, tmp_path, "0.9.7", enrols=True)
    assert site.play("deploy.yml", wheel=wheel).status == 0
    token = "one-time-6f1d0c"
    tokens = tmp_path / "tokens.yml"
    tokens.write_text(f"gua_agent_enrollment_tokens: {{atlas: {token}}}\n")
    monkeypatch.setenv("ANSIBLE_PIPELINING", "0")
    board = {"gua_agent_server_url": "https://board.example.org"}
    first = site.play("enroll.yml", "-vvv", "--diff", "-e", f"@{tokens}", **board)
    assert (first.status, first.result("atlas")) == (0, "enrolled"), first.output
    # the module with its input never was a file on the host, though the site's own settings would have had it so
    swap = first.output.partition("TASK [gua_agent : The token is swapped")[2].partition("TASK [")[0]
    assert ("EXEC" in swap, "PUT" in swap) == (True, False)
    second = site.play("enroll.yml", "-vvv", "--diff", "-e", f"@{tokens}", **board)
    assert (second.status, second.changed["atlas"], second.result("atlas")) == (0, 0, "unchanged"), second.output
    printed = first.output + second.output
    assert (token in printed, "host-token-of-its-own" in printed) == (False, False)
    assert atlas.run("sh", "-c", f"grep -rl {token} /home /root /tmp /var/tmp /etc /opt /var/log || true") == ""
    assert atlas.run("stat", "-c", "%U %a", "/var/lib/gua/cloud.json").strip() == "gua 600"
