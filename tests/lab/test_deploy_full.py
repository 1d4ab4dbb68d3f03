"""What takes too long for every landing: deployments that fail, refusals, damage, hostile hosts, removal for good."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.lab.deployment import QUICK, Installed, Site, history, look, paths
from tests.lab.full import FULL
from tests.lab.harness import Lab
from tests.lab.host import LabHost
from tests.lab.releases import (
    DIES_AFTER_5_S,
    EXITS,
    IS_UNHEALTHY,
    WRITES_A_NEWER_SCHEMA,
    alter_wheel,
    rename_schema,
)

pytestmark = FULL

NEXT = "0.9.0"


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
    before, store = look(atlas), history(atlas)
    run = site.play("deploy.yml", wheel=alter_wheel(site.wheel, tmp_path, "0.9.9", changes), gua_agent_settle_s="10")
    assert (run.status, run.result("atlas")) == (2, "rolled back"), run.output
    assert reason in run.rows["atlas"][-1] or "the unit is" in run.rows["atlas"][-1]
    after = look(atlas)
    assert (after.release, after.files) == (before.release, before.files)
    assert history(atlas) == store
    # the good one goes on as if nothing had been
    again = site.play("deploy.yml")
    assert (again.status, again.changed["atlas"]) == (0, 0), again.output


def test_a_history_that_the_newer_agent_has_changed_is_told_with_its_copy_and_the_docs_way_back_works(
    site: Site, atlas: LabHost, tmp_path: Path
) -> None:
    before = look(atlas)
    run = site.play("deploy.yml", wheel=alter_wheel(site.wheel, tmp_path, "0.9.9", WRITES_A_NEWER_SCHEMA))
    assert (run.status, run.result("atlas")) == (2, "rolled back"), run.output
    (copy,) = atlas.run("sh", "-c", "ls /var/lib/gua | grep schema").split()
    assert "was put back, and IS NOT WELL: " in run.output
    assert atlas.run("readlink", "/opt/gua/current").strip() == before.release
    assert f"update gua here; or go on from {copy}" in atlas.run("journalctl", "-u", "gua-agent", "--no-pager")
    assert atlas.run("stat", "-c", "%U:%G %a", f"/var/lib/gua/{copy}") == atlas.run(
        "stat", "-c", "%U:%G %a", "/var/lib/gua/gua.db"
    )
    # as docs/store.md tells it
    atlas.run("systemctl", "stop", "gua-agent")
    aside = "cd /var/lib/gua && mkdir -m 700 newer && mv $(ls gua.db gua.db-wal gua.db-shm 2>/dev/null) newer/ && cp -p"
    atlas.run("sh", "-c", f"{aside} {copy} gua.db")
    again = site.play("deploy.yml")
    assert (again.status, again.result("atlas")) == (0, "deployed"), again.output
    assert look(atlas).version == before.version
    atlas.run("rm", "-r", "/var/lib/gua/newer", f"/var/lib/gua/{copy}")


def test_an_agent_that_this_controller_could_not_read_is_refused_before_anything_is_changed(
    site: Site, atlas: LabHost, tmp_path: Path
) -> None:
    before, releases = look(atlas), atlas.run("ls", "/opt/gua/releases")
    wheel = alter_wheel(site.wheel, tmp_path, "0.9.9")
    rename_schema(wheel, "report.1", "report.2")
    run = site.play("deploy.yml", wheel=wheel)
    assert (run.status, run.result("atlas")) == (2, "failed"), run.output
    assert "agent 0.9.9 writes gua.report/2; this gua-fleet" in run.rows["atlas"][-1]
    assert (look(atlas), atlas.run("ls", "/opt/gua/releases")) == (before, releases)
    looked = site.play("preflight.yml")
    assert (looked.status, looked.result("atlas"), looked.changed["atlas"]) == (0, "ready", 0), looked.output
    assert f"atlas: agent {site.version} is read by this gua-fleet {site.version}" in looked.output


def test_a_rehearsal_on_an_installed_host_tells_what_would_change(site: Site, atlas: LabHost, tmp_path: Path) -> None:
    before = look(atlas)
    same = site.play("deploy.yml", "--check", "--diff")
    assert (same.status, same.changed["atlas"], same.result("atlas")) == (0, 0, "unchanged"), same.output
    wheel = alter_wheel(site.wheel, tmp_path, NEXT)
    rehearsed = site.play("deploy.yml", "--check", "--diff", wheel=wheel, gua_agent_interval="2s")
    assert (rehearsed.status, rehearsed.result("atlas")) == (0, "would deploy"), rehearsed.output
    assert '+interval = "2s"' in rehearsed.output
    assert look(atlas) == before
    real = site.play("deploy.yml", wheel=wheel, gua_agent_interval="2s")
    assert (real.status, real.changed["atlas"]) == (0, rehearsed.changed["atlas"]), real.output
    back = site.play("rollback.yml", "--check", "--diff")
    assert (back.status, back.result("atlas")) == (0, "would go back"), back.output
    assert look(atlas).version == NEXT
    done = site.play("rollback.yml")
    assert (done.status, done.changed["atlas"], done.result("atlas")) == (0, back.changed["atlas"], "went back")
    assert look(atlas) == Installed(**{**vars(before), "pid": look(atlas).pid})


def test_a_misspelt_setting_is_named_and_nothing_is_done(site: Site, atlas: LabHost) -> None:
    before = look(atlas)
    run = site.play("deploy.yml", gua_agent_intervl="30s")
    assert (run.status, run.result("atlas")) == (2, "failed")
    assert "No such setting: gua_agent_intervl" in run.rows["atlas"][-1]
    assert look(atlas) == before


def test_an_upgrade_wants_a_version_and_an_older_one_is_refused(site: Site, atlas: LabHost, tmp_path: Path) -> None:
    wheel = alter_wheel(site.wheel, tmp_path, NEXT)
    assert site.play("upgrade.yml", wheel=wheel).status == 2
    assert look(atlas).version == site.version
    assert site.play("upgrade.yml", wheel=wheel, gua_agent_version=NEXT).status == 0
    before = look(atlas)
    run = site.play("deploy.yml")
    assert (run.status, run.result("atlas")) == (2, "failed")
    assert f"has {NEXT}, newer than" in run.rows["atlas"][-1]
    assert look(atlas) == before
    assert site.play("deploy.yml", gua_agent_allow_downgrade="true").status == 0
    assert look(atlas).version == site.version


def test_the_status_tells_who_is_not_well(site: Site, atlas: LabHost) -> None:
    atlas.run("systemctl", "stop", "gua-agent")
    stopped = site.play("status.yml")
    assert (stopped.status, stopped.result("atlas")) == (2, "not well")
    assert "the unit is inactive" in stopped.rows["atlas"][-1]
    started = site.play("deploy.yml")
    assert (started.status, started.changed["atlas"]) == (0, 1), started.output


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


def test_a_host_fetches_its_wheelhouse_from_a_mirror_and_believes_only_what_was_made_here(
    site: Site, atlas: LabHost, tmp_path: Path
) -> None:
    wheel = alter_wheel(site.wheel, tmp_path, "0.9.6")
    made = site.play("wheelhouse.yml", "-e", json.dumps({"gua_only": [python_line(atlas)]}), wheel=wheel)
    archive = Path(re.findall(r'"archive": "([^"]+)"', made.output)[0])
    published = tmp_path / "mirror" / archive.name
    published.parent.mkdir()
    published.write_bytes(archive.read_bytes()[:-512] + bytes(512) + b"more")
    with serving(published.parent, site.lab.address) as url:
        before = look(atlas)
        refused = site.play("deploy.yml", wheel=wheel, gua_agent_wheelhouse_url=url)
        assert (refused.status, refused.result("atlas")) == (2, "failed"), refused.output
        assert "is not what this controller made" in refused.rows["atlas"][-1]
        assert look(atlas) == before
        published.write_bytes(archive.read_bytes())
        taken = site.play("deploy.yml", wheel=wheel, gua_agent_wheelhouse_url=url)
    assert (taken.status, look(atlas).version) == (0, "0.9.6"), taken.output
    assert "The wheelhouse is on the host" not in taken.output.partition("skipping: [atlas]")[0]
    assert site.play("deploy.yml", gua_agent_allow_downgrade="true").status == 0


def python_line(host: LabHost) -> str:
    return host.run("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()


@contextmanager
def serving(folder: Path, address: str) -> Iterator[str]:
    """A web server of files; its address."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer((address, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://{address}:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_host_that_is_shut_tight_is_served(lab: Lab, site: Site, tmp_path: Path) -> None:
    tight = Site(lab, "boreas", **QUICK)
    host = lab.hosts["boreas"]
    host.run("sh", "-c", "echo 'umask 077' >>/etc/profile; sed -i 's/^UMASK.*/UMASK 077/' /etc/login.defs")
    host.run("mount", "-t", "tmpfs", "-o", "noexec", "tmpfs", "/tmp")
    host.run("mount", "-o", "remount,hidepid=2", "/proc")
    host.run("sh", "-c", "mount --bind /usr /usr && mount -o remount,bind,ro /usr")
    run = tight.play("deploy.yml", "--limit", "boreas")
    assert (run.status, run.result("boreas")) == (0, "deployed"), run.output
    assert "hidepid=" in run.rows["boreas"][-1]
    assert "/usr is read-only" in run.rows["boreas"][-1]
    assert host.run("/opt/gua/current/bin/gua", "--version").split()[-1] == site.version
    again = tight.play("deploy.yml", "--limit", "boreas")
    assert (again.status, again.changed["boreas"]) == (0, 0), again.output
    assert tight.play("status.yml", "--limit", "boreas").result("boreas") == "well"
    assert tight.play("undeploy.yml", "--limit", "boreas").result("boreas") == "removed"


def test_a_limit_that_systemd_would_ignore_is_refused_and_anothers_command_stays(lab: Lab, site: Site) -> None:
    other = Site(lab, "echo", **QUICK)
    mine = lab.hosts["echo"].path("/usr/local/bin/gua")
    mine.write_text("#!/bin/sh\necho mine\n")
    mine.chmod(0o755)
    refused = other.play("deploy.yml", "--limit", "echo", gua_agent_memory_max="plenty")
    assert (refused.status, refused.result("echo")) == (2, "failed"), refused.output
    assert "gua_agent_memory_max is a size such as 256M" in refused.rows["echo"][-1]
    run = other.play("deploy.yml", "--limit", "echo")
    assert (run.status, run.result("echo")) == (0, "deployed"), run.output
    assert "/usr/local/bin/gua is another's and stays" in run.rows["echo"][-1]
    assert other.play("undeploy.yml", "--limit", "echo").result("echo") == "removed"
    assert lab.hosts["echo"].run("gua") == "mine\n"


def test_a_person_who_is_called_like_the_service_user_is_left_alone(lab: Lab, site: Site) -> None:
    person = Site(lab, "cetus", **QUICK)
    host = lab.hosts["cetus"]
    host.add_user("gua", lab.public_key)
    before = host.run("getent", "passwd", "gua")
    run = person.play("deploy.yml", "--limit", "cetus")
    assert (run.status, run.result("cetus")) == (2, "failed"), run.output
    assert "has an account gua whose home is /home/gua" in run.rows["cetus"][-1]
    gone = person.play("undeploy.yml", "--limit", "cetus", gua_agent_purge="true")
    assert (gone.status, gone.result("cetus")) == (0, "unchanged"), gone.output
    assert host.run("getent", "passwd", "gua") == before


def test_a_purge_takes_everything_and_a_new_beginning_works(lab: Lab, site: Site, atlas: LabHost) -> None:
    everybody = Site(lab, "delos", **QUICK)
    many = everybody.play("undeploy.yml", gua_agent_purge="true")
    assert many.status == 2
    assert f"purge {len(lab.hosts)} hosts" in many.output
    assert site.play("undeploy.yml", "--limit", "atlas", gua_agent_purge="true").status == 0
    assert paths(atlas) == set()
    fresh = site.play("deploy.yml", "--limit", "atlas")
    assert (fresh.status, fresh.result("atlas")) == (0, "deployed"), fresh.output
