"""From a playbook to a right fleet report, on real hosts: systemd, sshd, NVML bindings, SQLite, Ansible, SSH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.lab.harness import Lab
from tests.lab.scenes import FLEET, STATES, USERS, Expected, Stage
from tests.nvml_stub.library import StubUnavailable, build

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[2]
READERS = "gpureaders"
SETTINGS = {
    "gua_agent_on_no_gpu": "install",  # the stub's cards are on no PCI bus
    "gua_agent_trust_pid_namespace": True,
    "gua_agent_interval": "1s",
    "gua_agent_settle_s": 2,
    "gua_agent_readers_group": READERS,
}
EXACT = {"rel": 1e-6, "abs": 2e-3}  # milliseconds are what ticks are stamped with


class Fleet:
    """The deployed lab, and what its administrator and its reader can do."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.admin = lab.write_inventory("admin.yml", user="deploy", become=True, **SETTINGS)
        self.reader = lab.write_inventory("inventory.yml", user="reader")
        self.stages = {name: Stage(lab.hosts[name], parts) for name, parts in FLEET.items()}
        self.since = ""

    def deploy(self, *options: str) -> str:
        """Run the playbook as a person would; its output."""
        tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        command = ["ansible-playbook", "-i", str(self.admin), "deploy.yml", "-e", "gua_serial=100%"]
        done = subprocess.run(
            [*command, *options], cwd=ROOT / "ansible", text=True,
            capture_output=True, timeout=240, env={**self.lab.environment(), "PATH": tools, "XDG_CACHE_HOME": CACHE},
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-2000:]}"
        return done.stdout

    def report(self, *options: str, inventory: Path | None = None) -> tuple[int, str, str]:
        """`gua-fleet report` over the time since all scenes hold: exit status, stdout, stderr."""
        return self.ask("report", "--since", self.since, "--tz", "UTC", *options, inventory=inventory)

    def ask(self, command: str, *options: str, inventory: Path | None = None) -> tuple[int, str, str]:
        """A `gua-fleet` command: exit status, stdout, stderr."""
        words = [sys.executable, "-m", "gua_fleet", command, "--hosts", str(inventory or self.reader), *options]
        done = subprocess.run(words, text=True, capture_output=True, timeout=180, env=self.environment())
        return done.returncode, done.stdout, done.stderr

    def environment(self) -> dict[str, str]:
        """What gua-fleet runs with, from this checkout."""
        paths = os.pathsep.join(str(ROOT / part) for part in ("agent", "fleet"))
        return {**self.lab.environment(), "PYTHONPATH": paths}

    def document(self) -> Any:
        """The merged report of hosts that all answered."""
        status, printed, errors = self.report("--format", "json")
        assert status == 0, printed + errors
        return json.loads(printed)


CACHE = str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"))


@pytest.fixture(scope="module")
def fleet(lab: Lab) -> Iterator[Fleet]:
    """Three hosts, deployed, every scene as it stays."""
    lab.boot(*FLEET)
    fleet = Fleet(lab)
    for name, stage in fleet.stages.items():
        install_stub(lab, name)
        for user in USERS:
            lab.hosts[name].add_user(user, lab.public_key)
        stage.start_jobs()
        stage.show(lost=False)
    fleet.deploy()
    for host in lab.hosts.values():
        host.add_user("reader", lab.public_key, groups=(READERS,))
    for stage in fleet.stages.values():
        stage.show(lost=True)
    wait_until(lambda: last_tick_status(lab, "boreas") == "partial", "boreas lost a card and did not notice")
    fleet.since = now_iso()
    wait_for_ticks(fleet, 4)
    return fleet


def install_stub(lab: Lab, name: str) -> None:
    try:
        library = build(lab.directory)
    except StubUnavailable as exc:
        pytest.fail(str(exc)) if os.environ.get("GUA_LAB_REQUIRED") == "1" else pytest.skip(str(exc))
    shutil.copy(library, lab.hosts[name].path("/usr/lib/libnvidia-ml.so.1"))


def checks(lab: Lab, name: str) -> dict[str, Any]:
    """What `gua doctor` says on a host, by the checks' ids."""
    printed = lab.hosts[name].run("sh", "-c", "gua doctor --json || true")
    return {check["id"]: check for check in json.loads(printed)["checks"]}


def last_tick_status(lab: Lab, name: str) -> str | None:
    """What the daemon's newest sampling on a host gave, by the agent's own word."""
    status = checks(lab, name)["daemon"]["details"]["last_tick_status"]
    return None if status is None else str(status)


def wait_until(condition: Callable[[], bool], complaint: str, deadline_s: float = 60) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"{complaint} within {deadline_s:.0f} s"
        time.sleep(0.5)


def wait_for_ticks(fleet: Fleet, count: int) -> None:
    """Until every host has `count` more good ticks since `fleet.since`."""

    def ticks() -> list[int]:
        return [sum(host["coverage"]["ticks"].values()) for host in fleet.document()["hosts"]]

    goal = [so_far + count for so_far in ticks()]
    wait_until(lambda: all(map(int.__ge__, ticks(), goal)), f"no {count} ticks came")


def now_iso() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def assert_follows_from_scenes(document: Any, answered: tuple[str, ...] = tuple(FLEET)) -> None:
    """Every amount of the document is what the scenes imply for the time that was observed."""
    hosts = {host["name"]: host for host in document["hosts"]}
    assert list(hosts) == list(FLEET)
    observed = {name: hosts[name]["coverage"]["observed_card_s"] / len(FLEET[name]) for name in answered}
    assert all(seconds > 0 for seconds in observed.values())
    expected = Expected(observed)
    for name in answered:
        assert hosts[name]["cards"] == len(FLEET[name])
        assert hosts[name]["card_s"] == pytest.approx(expected.host(name), **EXACT)
    assert document["card_s"] == pytest.approx(expected.total(), **EXACT)
    assert_coverage_adds_up(document, hosts, answered, expected)
    # what a silent host had when it last answered is still counted, as not seen
    assert_models(document, Expected({**dict.fromkeys(FLEET, 0.0), **observed}))
    assert_users(document, expected)


def assert_coverage_adds_up(document: Any, hosts: Any, answered: tuple[str, ...], expected: Expected) -> None:
    coverage = document["coverage"]
    parts = [hosts[name]["coverage"] for name in answered]
    silent_s = window_s(document) * sum(len(FLEET[name]) for name in FLEET if name not in answered)
    for key, silent in (("expected_card_s", silent_s), ("observed_card_s", 0), ("unobserved_card_s", silent_s)):
        assert coverage[key] == pytest.approx(sum(part[key] for part in parts) + silent, **EXACT)
    assert coverage["observed_card_s"] == pytest.approx(sum(document["card_s"].values()), **EXACT)
    assert coverage["expected_card_s"] == pytest.approx(
        coverage["observed_card_s"] + coverage["unobserved_card_s"], **EXACT
    )
    assert coverage["unknown_by_reason"] == pytest.approx(expected.reasons(), **EXACT)
    ticks = {name: hosts[name]["coverage"]["ticks"] for name in answered}
    assert all(ticks[name]["error"] == ticks[name]["unresponsive"] == 0 for name in answered)
    # A lost card makes each tick of its host partial, and no other host's.
    assert {name for name in answered if ticks[name]["partial"]} == {"boreas"} & set(answered)
    assert {name for name in answered if ticks[name]["ok"]} == set(answered) - {"boreas"}
    assert document["samples"] == sum(sum(ticks[name].values()) * len(FLEET[name]) for name in answered)


def window_s(document: Any) -> float:
    since, until = (
        datetime.fromisoformat(document["window"][end].replace("Z", "+00:00")) for end in ("since", "until")
    )
    return (until - since).total_seconds()


def assert_models(document: Any, expected: Expected) -> None:
    models = {model["name"]: model for model in document["models"]}
    assert not any(model["mig"] for model in models.values())
    assert {name: model["cards"] for name, model in models.items()} == {
        name: cards for name, (cards, _) in expected.models().items()
    }
    for name, (_, states) in expected.models().items():
        assert models[name]["card_s"] == pytest.approx(states, **EXACT)


def assert_users(document: Any, expected: Expected) -> None:
    users = {user["user"]: user for user in document["users"]}
    assert set(users) == set(expected.users())
    shares = sum(sums.share_s for sums in expected.users().values())
    assert sum(user["share_s"] for user in users.values()) == pytest.approx(shares, **EXACT)
    for name, sums in expected.users().items():
        user = users[name]
        assert user["user_source"] == "owner"
        assert user["card_s"] == pytest.approx(sums.card_s, **EXACT)
        assert user["shared_card_s"] == pytest.approx(sums.shared_card_s, **EXACT)
        # Half of an odd number of milliseconds is rounded, once per tick, so that the shares still add up.
        assert user["share_s"] == pytest.approx(sums.share_s, abs=0.001 * document["samples"])
        assert {state: user["states"][state] for state in STATES} == pytest.approx(sums.states, **EXACT)
        assert user["idle_held_card_s"] == pytest.approx(sums.states["idle-held"], **EXACT)


def test_a_second_deployment_changes_nothing(fleet: Fleet) -> None:
    pids = {name: host.run("systemctl", "show", "-P", "MainPID", "gua-agent") for name, host in fleet.lab.hosts.items()}
    recap = [line for line in fleet.deploy().splitlines() if "unreachable=" in line]
    assert len(recap) == len(FLEET) + 1
    assert all("changed=0 " in line and "failed=0 " in line for line in recap), recap
    for name, host in fleet.lab.hosts.items():
        assert host.run("systemctl", "show", "-P", "MainPID", "gua-agent") == pids[name]


def test_the_report_says_what_the_scenes_say(fleet: Fleet) -> None:
    document = fleet.document()
    assert_follows_from_scenes(document)
    # A second's ticks cover a second: nearly everything must have been seen.
    assert document["coverage"]["observed_card_s"] > 0.8 * document["coverage"]["expected_card_s"]
    assert {(card["host"], card["index"]) for card in document["free"]} == {("atlas", 3), ("cetus", 1)}


def test_the_report_holds_before_while_and_after_the_daemon_restarts(fleet: Fleet) -> None:
    before = fleet.document()
    for host in fleet.lab.hosts.values():
        host.run("systemctl", "stop", "gua-agent")
    stopped = fleet.document()
    later = fleet.document()
    for host in fleet.lab.hosts.values():
        host.run("systemctl", "start", "gua-agent")
    during = fleet.document()
    wait_for_ticks(fleet, 3)
    after = fleet.document()
    for document in (before, stopped, later, during, after):
        assert_follows_from_scenes(document)
    amounts = [document["coverage"] for document in (before, stopped, later, during, after)]
    observed = [amount["observed_card_s"] for amount in amounts]
    assert observed == sorted(observed)
    assert observed[-1] > observed[0]
    # Nobody looked while it was stopped, and nothing makes up for that.
    assert amounts[2]["unobserved_card_s"] > amounts[1]["unobserved_card_s"]
    assert amounts[4]["unobserved_card_s"] >= amounts[2]["unobserved_card_s"] - 0.01


def test_the_table_names_every_host_and_user(fleet: Fleet) -> None:
    status, table, errors = fleet.report("--format", "table")
    assert (status, "Traceback" in errors) == (0, False)
    for word in (*FLEET, *USERS, "H100", "2080 Ti", "card_lost"):
        assert word in table


def test_an_ssh_user_outside_the_readers_group_is_told_so(fleet: Fleet) -> None:
    fleet.lab.hosts["atlas"].add_user("stranger", fleet.lab.public_key)
    inventory = fleet.lab.write_inventory("stranger.yml", user="stranger")
    status, printed, _ = fleet.report("--format", "json", "--limit", "atlas", inventory=inventory)
    [host] = json.loads(printed)["hosts"]
    assert (status, host["outcome"], host["card_s"]) == (3, "needs-privilege", None)
    assert f"join group {READERS}" in host["detail"]


def test_a_deployment_that_was_cut_off_before_the_restart_is_finished_by_the_next(fleet: Fleet) -> None:
    atlas = fleet.lab.hosts["atlas"]

    def pid() -> str:
        return atlas.run("systemctl", "show", "-P", "MainPID", "gua-agent")

    before = pid()
    # what a run leaves that wrote its files and then lost its connection
    atlas.run("sh", "-c", "echo of a run before > /opt/gua/started-with")
    fleet.deploy("--limit", "atlas")
    assert pid() != before


def test_a_pause_lets_go_of_the_driver_and_another_one_is_taken_up_without_a_restart(fleet: Fleet) -> None:
    lab, atlas = fleet.lab, fleet.lab.hosts["atlas"]

    def pid() -> str:
        return atlas.run("systemctl", "show", "-P", "MainPID", "gua-agent")

    before = pid()
    atlas.run("gua", "pause", "--for", "10m")
    users = atlas.run("sh", "-c", "grep -l libnvidia-ml /proc/[0-9]*/maps 2>/dev/null || true")
    assert users.strip() == ""
    assert "paused" in checks(lab, "atlas")["daemon"]["summary"]
    assert checks(lab, "atlas")["nvml"]["status"] == "skip"
    fleet.stages["atlas"].show(lost=True, driver="580.65.06", generation=1)
    atlas.run("gua", "resume")
    resumed = now_iso()
    wait_until(lambda: checks(lab, "atlas")["daemon"]["details"]["last_tick_at"] > resumed, "nothing was sampled")
    seen = checks(lab, "atlas")
    assert (seen["daemon"]["status"], seen["nvml"]["details"]["driver_version"]) == ("ok", "580.65.06")
    assert pid() == before
    assert_follows_from_scenes(fleet.document())


def test_sync_once_goes_by_sudo_without_a_password_and_names_who_may_not(fleet: Fleet) -> None:
    def sync(inventory: Path) -> Any:
        _, printed, _ = fleet.ask("sync-once", "--limit", "atlas", "--json", inventory=inventory)
        [host] = json.loads(printed)["hosts"]
        return host

    assert sync(fleet.admin)["outcome"] == "ok"
    refused = sync(fleet.lab.write_inventory("no-sudo.yml", user="reader", become=True))
    assert (refused["outcome"], refused["document"]) == ("needs-privilege", None)


@pytest.mark.parametrize(("harm", "mend"), [("cut", "heal"), ("freeze", "thaw")])
def test_a_host_that_is_cut_off_or_frozen_is_named_and_whole_again_afterwards(
    fleet: Fleet, harm: str, mend: str
) -> None:
    """It takes connections, or none, and answers nothing: it costs its own deadline, and the others nothing."""
    cetus = fleet.lab.hosts["cetus"]
    getattr(cetus, harm)()
    try:
        status, printed, _ = fleet.report("--format", "json", "--timeout", "5s")
    finally:
        getattr(cetus, mend)()
    document = json.loads(printed)
    silent = next(host for host in document["hosts"] if host["name"] == "cetus")
    assert (status, silent["card_s"]) == (1, None)
    assert silent["outcome"].partition(":")[0] in ("unreachable", "timeout")
    assert_follows_from_scenes(document, answered=("atlas", "boreas"))
    status, printed, _ = fleet.report("--format", "json")
    assert (status, json.loads(printed)["hosts"][-1]["outcome"]) == (0, "ok")


def test_a_slow_and_a_lossy_link_cost_time_and_no_figure(fleet: Fleet) -> None:
    """boreas is 600 ms away and back, every fifth packet of cetus is lost each way."""
    over = ("--until", fleet.document()["window"]["until"], "--format", "json")
    wait_for_ticks(fleet, 2)  # what is over by now changes no more
    figures = figures_of(*fleet.report(*over))
    fleet.lab.hosts["boreas"].delay(300)
    fleet.lab.hosts["cetus"].lose(20)
    try:
        assert figures_of(*fleet.report(*over, "--timeout", "90s")) == figures
        status, printed, errors = fleet.ask("status", "--timeout", "90s", "--json")
    finally:
        for name in ("boreas", "cetus"):
            fleet.lab.hosts[name].heal()
    assert [host["outcome"] for host in json.loads(printed)["hosts"]] == ["ok"] * 3, errors
    assert status == 0


def figures_of(status: int, printed: str, errors: str) -> dict[str, Any]:
    """What a report says of its window, of hosts that all answered; not what is so now."""
    assert status == 0, printed + errors
    document = json.loads(printed)
    assert_follows_from_scenes(document)
    amounts = ("window", "coverage", "card_s", "samples", "users", "models", "groups", "hours_of_week")
    hosts = [
        {key: host[key] for key in ("name", "outcome", "cards", "card_s", "coverage")} for host in document["hosts"]
    ]
    return {"hosts": hosts, **{key: document[key] for key in amounts}}


# On a busy machine the second is a round trip of 3 s later than on another.
@pytest.mark.parametrize(("ms", "timeout_s", "stages"), [(4000, 5, ["connect"]), (1500, 15, ["auth", "connect"])])
def test_a_link_too_bad_for_the_time_there_is_is_told_with_how_far_it_came(
    fleet: Fleet, ms: int, timeout_s: int, stages: list[str]
) -> None:
    cetus = fleet.lab.hosts["cetus"]
    cetus.delay(ms)
    began_s = time.monotonic()
    try:
        status, printed, _ = fleet.report("--format", "json", "--timeout", f"{timeout_s}s")
    finally:
        took_s = time.monotonic() - began_s
        cetus.heal()
    document = json.loads(printed)
    assert status == 1
    assert document["hosts"][-1]["outcome"] in [f"timeout:{stage}" for stage in stages]
    assert f"within {timeout_s} s" in document["hosts"][-1]["detail"]
    assert_follows_from_scenes(document, answered=("atlas", "boreas"))
    assert took_s < timeout_s + 30


def test_a_host_without_power_is_named_and_costs_only_itself(fleet: Fleet) -> None:
    fleet.lab.hosts["cetus"].power_off()
    status, printed, _ = fleet.report("--format", "json", "--timeout", "5s")
    document = json.loads(printed)
    assert status == 1
    cetus = next(host for host in document["hosts"] if host["name"] == "cetus")
    assert cetus["outcome"] in ("unreachable", "timeout:connect")
    assert (cetus["card_s"], cetus["coverage"]) == (None, None)
    assert_follows_from_scenes(document, answered=("atlas", "boreas"))
    status, table, _ = fleet.report("--timeout", "5s")
    assert status == 1
    assert "cetus" in table
