"""Many hosts: a rollout that stops where it must, each suite under each line of ansible-core, a Python too old."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.board import Board
from tests.lab.board import ENVIRONMENT, lab_board
from tests.lab.conftest import lab_or_skip, skip_or_fail
from tests.lab.controllers import CORES, controller, find_python
from tests.lab.deployment import QUICK, SETTINGS, Run, Site, look, paths
from tests.lab.full import FULL
from tests.lab.harness import Lab
from tests.lab.host import LabHost
from tests.lab.needs import LabUnavailable
from tests.lab.releases import EXITS, EXITS_WHERE_MARKED, MARK, alter_wheel
from tests.lab.tokens import Vault

pytestmark = FULL

TEN = tuple(f"host{number}" for number in range(10))
SUITES = {"atlas": "bullseye", "boreas": "bookworm", "cetus": "trixie"}
NEXT = "0.9.0"


def test_ten_hosts_stop_at_a_broken_canary_and_at_a_failure_in_the_second_batch(tmp_path: Path) -> None:
    with lab_or_skip() as lab:
        site = Site(lab, *TEN, **QUICK)
        first, second = (
            alter_wheel(site.wheel, tmp_path, version, EXITS_WHERE_MARKED) for version in ("0.9.1", "0.9.2")
        )
        expected = {"host0": "rolled back"}
        assert_stops(site, "host0", first, expected)
        assert {name for name, host in lab.hosts.items() if paths(host)} == {"host0"}
        assert running(lab) == set()
        expected = {"host0": "deployed", "host1": "rolled back", "host2": "deployed"}
        assert_stops(site, "host1", first, expected)
        assert {name for name, host in lab.hosts.items() if paths(host)} == set(expected)
        assert running(lab) == {"host0", "host2"}
        assert_all(site.play("deploy.yml", wheel=first), TEN, "deployed", "unchanged")
        before = {name: look(host) for name, host in lab.hosts.items()}
        assert {agent.version for agent in before.values()} == {"0.9.1"}
        # and the same of an upgrade: whom it did not reach does not even notice
        assert_stops(site, "host2", second, {"host0": "deployed", "host1": "deployed", "host2": "rolled back"})
        after = {name: look(host) for name, host in lab.hosts.items()}
        assert {name for name in TEN if after[name] != before[name]} == {"host0", "host1", "host2"}
        assert {name for name in TEN if after[name].version == "0.9.2"} == {"host0", "host1"}
        assert (after["host2"].release, after["host2"].files) == (before["host2"].release, before["host2"].files)
        # nor is anybody left half-way who shares a batch with one that fails early
        soon = "{{ 'soon' if inventory_hostname == 'host1' else '1s' }}"
        refused = site.play("deploy.yml", "-e", json.dumps({"gua_agent_interval": soon}), wheel=second)
        expected = {"host0": "unchanged", "host1": "failed", "host2": "deployed"}
        assert {name: refused.result(name) for name in TEN} == {**dict.fromkeys(TEN, "not touched"), **expected}
        assert (look(lab.hosts["host1"]), look(lab.hosts["host2"]).version) == (after["host1"], "0.9.2")
        assert {name: look(lab.hosts[name]) for name in TEN[3:]} == {name: before[name] for name in TEN[3:]}


def assert_stops(site: Site, broken: str, wheel: Path, expected: dict[str, str]) -> None:
    """A deployment of `wheel`, which does not come up on the host `broken`, ends with exactly these results."""
    mark = site.lab.hosts[broken].path(MARK)
    mark.write_text(wheel.name.split("-")[1])
    run = site.play("deploy.yml", wheel=wheel)
    mark.unlink()
    assert run.status == 2, run.output
    assert {name: run.result(name) for name in TEN} == {**dict.fromkeys(TEN, "not touched"), **expected}, run.output


def running(lab: Lab) -> set[str]:
    """Hosts on which an agent runs now."""
    return {
        name
        for name, host in lab.hosts.items()
        if host.run("sh", "-c", "systemctl is-active gua-agent; true") == "active\n"
    }


def assert_all(run: Run, names: tuple[str, ...], *results: str) -> None:
    assert run.status == 0, run.output
    assert {name: run.result(name) in results for name in names} == dict.fromkeys(names, True), run.output


@pytest.fixture(scope="module")
def fleet() -> Iterator[Site]:
    """A host of each suite."""
    if shutil.which("debootstrap"):
        for suite in SUITES.values():
            if not Path(f"/usr/share/debootstrap/scripts/{suite}").exists():
                pytest.skip(f"this debootstrap does not know {suite}")
    with lab_or_skip() as lab:
        yield Site(lab, *SUITES, suites=SUITES, **QUICK, gua_agent_environment=ENVIRONMENT)


@pytest.fixture(scope="module")
def board(fleet: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    with lab_board(fleet.lab, tmp_path_factory.mktemp("board")) as board:
        yield board


@pytest.mark.parametrize("core", CORES)
def test_every_suite_is_served_by_every_controller(
    fleet: Site, board: Board, core: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        tools = controller(core)
    except LabUnavailable as exc:
        skip_or_fail(exc)
    names, hosts = tuple(SUITES), fleet.lab.hosts
    tokens = {name: f"{name}-{core}" for name in names}
    board.one_time |= set(tokens.values())
    vault, to_board = Vault(tmp_path, monkeypatch), ("-e", f"gua_agent_server_url={board.url}")

    def play(playbook: str, *options: str, wheel: Path | None = None) -> Run:
        return fleet.play(playbook, "-e", "gua_serial=100%", *options, wheel=wheel, tools=tools)

    rehearsed = play("deploy.yml", "--check", "--diff")
    assert_all(rehearsed, names, "would deploy")
    deployed = play("deploy.yml")
    assert_all(deployed, names, "deployed")
    assert {name: deployed.changed[name] for name in names} == {name: rehearsed.changed[name] for name in names}
    lines = {name: look(host).release.split("-")[1] for name, host in hosts.items()}
    assert lines == {"atlas": "py39", "boreas": "py311", "cetus": "py313"}
    assert {name: judged(host) for name, host in hosts.items()} == dict.fromkeys(names, ("", True))
    unchanged(play("deploy.yml"), names)
    # one that fails stops nobody, and costs nobody's token
    run = play("enroll.yml", *vault.options({name: tokens[name] for name in names[1:]}), *to_board)
    results = {name: run.result(name) for name in names}
    assert (run.status, results) == (2, {**dict.fromkeys(names, "enrolled"), names[0]: "failed"}), run.output
    assert board.one_time == {tokens[names[0]]}
    enrolment = (*vault.options(tokens), *to_board)
    assert_all(play("enroll.yml", *enrolment), names, "enrolled", "unchanged")
    unchanged(play("enroll.yml", *enrolment), names)
    assert_all(play("status.yml"), names, "well")
    upgraded = play("upgrade.yml", "-e", f"gua_agent_version={NEXT}", wheel=alter_wheel(fleet.wheel, tmp_path, NEXT))
    assert_all(upgraded, names, "deployed")
    before = {name: look(host).release for name, host in hosts.items()}
    broken = play("deploy.yml", wheel=alter_wheel(fleet.wheel, tmp_path, "0.9.1", EXITS))
    assert (broken.status, {broken.result(name) for name in names}) == (2, {"rolled back"}), broken.output
    assert {name: look(host).release for name, host in hosts.items()} == before
    assert_all(play("rollback.yml"), names, "went back")
    unchanged(play("rollback.yml"), names)
    assert {look(host).version for host in hosts.values()} == {fleet.version}
    assert_all(play("undeploy.yml"), names, "removed")
    unchanged(play("undeploy.yml"), names)
    assert_all(play("deploy.yml"), names, "deployed")
    purge = play("undeploy.yml", "-e", "gua_agent_purge=true", "-e", "gua_agent_purge_confirm='purge 3 hosts'")
    assert_all(purge, names, "removed")
    assert {name: paths(host) for name, host in hosts.items()} == {name: set() for name in names}


def judged(host: LabHost) -> tuple[str, bool]:
    """What the host's own systemd finds odd about the unit, and whether it calls the service shut in."""
    # lines that begin otherwise are about the lab: systemd 247 cannot look at a unit in a control group of its own
    odd = host.run("sh", "-c", "systemd-analyze verify --man=no gua-agent.service 2>&1 | grep '^gua-agent'; true")
    exposure = host.run("systemd-analyze", "security", "--no-pager", "gua-agent.service")
    found = re.search(r"Overall exposure level for gua-agent.service: ([0-9.]+)", exposure)
    return odd, found is not None and float(found[1]) <= 2.5


def unchanged(run: Run, names: tuple[str, ...]) -> None:
    assert_all(run, names, "unchanged")
    assert {name: run.changed[name] for name in names} == dict.fromkeys(names, 0)


def test_a_host_whose_only_python_is_too_old_is_told_the_cure_and_served_by_another() -> None:
    old = next((found for found in map(find_python, ("3.8", "3.7", "3.6")) if found), None)
    if old is None:
        pytest.skip("there is no Python 3.6 to 3.8 here that a host could have")
    with lab_or_skip() as lab:
        site = Site(lab, "atlas", **QUICK)
        host = lab.hosts["atlas"]
        other = give_old_python(host, Path(old).resolve().parents[1])
        refused = site.play("deploy.yml")
        assert (refused.status, refused.result("atlas")) == (2, "failed"), refused.output
        told = refused.rows["atlas"][-1]
        assert "has no Python 3.9 to 3.13 with sqlite3, ssl and venv" in told
        assert "Found: /usr/bin/python3 (3." in told
        assert "Cure: install Python 3.9 or later" in told
        assert paths(host) == set()
        named = {"gua_agent_python": other, "ansible_python_interpreter": other}
        site.inventory = lab.write_inventory("named.yml", user="deploy", become=True, **SETTINGS, **QUICK, **named)
        assert_all(site.play("deploy.yml"), ("atlas",), "deployed")
        unchanged(site.play("deploy.yml"), ("atlas",))
        assert host.run("readlink", "-f", f"{look(host).release}/bin/python").strip() == other


def give_old_python(host: LabHost, prefix: Path) -> str:
    """Make the Python in `prefix` the host's only one in a system folder; where its own is now."""
    leave_out = shutil.ignore_patterns("test", "__pycache__", "*.a", "site-packages")
    shutil.copytree(prefix, host.path("/opt/old-python"), ignore=leave_out, symlinks=True)
    for library in (prefix / "lib").glob("libpython*.so*"):  # it looks for it where it was built
        shutil.copy(library, host.path("/usr/local/lib"))
    host.run("ldconfig")
    other = "/usr/local/lib/other-python/python3"
    host.run("sh", "-c", f"mkdir {Path(other).parent} && mv $(readlink -f /usr/bin/python3) {other}"
             " && ln -sf /opt/old-python/bin/python3 /usr/bin/python3")  # fmt: skip
    return other
