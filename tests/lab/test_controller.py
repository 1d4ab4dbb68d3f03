"""The controller on a real host: what its timers do there, and that nothing of it stays. The tests build on each other.

The host is its own GPU host: an ordinary user's daemon samples the stand-in's card, and the controller asks it by SSH.
"""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from gua_fleet.cli.main import COMMANDS
from tests.lab.deployment import Run, Site
from tests.lab.harness import Lab
from tests.lab.host import HostFailed, LabHost
from tests.lab.releases import READS_LATER_REPORTS, alter_wheel
from tests.nvml_stub.scene import Card, Scene

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1500)]

GUA = "/opt/gua-fleet/current/bin/gua"
DATA, SETTINGS, PAGE = "/var/lib/gua-fleet", "/etc/gua-fleet", "/var/lib/gua-fleet-page/free.html"
COMMAND = "/usr/local/bin/gua-fleet"
PLACES = f"/opt/gua-fleet {DATA} {SETTINGS} {PAGE} {COMMAND} /etc/systemd/system/{{,*/}}gua-fleet-*"
# As real ones do, it writes as another user into a spool that is closed to its caller.
SENDMAIL = '#!/bin/sh\n{ echo "given: $*"; cat; } | /usr/local/bin/drop /var/spool/closed/sent >/dev/null\n'
# Until there is a pull: the timer and its service are as real as they will be.
STAND_IN = "/etc/systemd/system/gua-fleet-pull.service.d/stand-in.conf"
PULL = f"[Service]\nExecStart=\nExecStart=/bin/sh -c 'date >>{DATA}/pulled'\n"


class Tower(Site):
    """The lab's one host, and the administrator who makes it the controller."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab, "tower")
        self.host = lab.hosts["tower"]
        self.host.add_user("reader", lab.public_key)
        idle = Scene(cards=(Card(uuid="GPU-idle", name="NVIDIA H100", util=0),))
        idle.save(self.host.path("/etc/gua-nvml-scene"))
        self._write_inventories()

    def _write_inventories(self) -> None:
        """The GPU hosts, one of which is on no network there is; and the controller's host with what it is to get."""
        gpu01 = {"ansible_host": self.host.address, "gua_command": GUA}
        hosts = {"gpu01": gpu01, "gpu02": {"ansible_host": "198.18.0.1"}}
        self.fleet = self.lab.directory / "fleet.yml"
        self.fleet.write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": {"ansible_user": "reader"}}}))
        settings = {
            "gua_controller_inventory_src": self.fleet.name,
            "gua_controller_known_hosts_src": "known_hosts",
            "gua_controller_ssh_key_src": str(self.lab.directory / "key"),
            "gua_controller_settings": {"timeout": "60s"},
            "gua_controller_mail_to": ["ops@example.org"],
        }
        lab = yaml.safe_load(self.inventory.read_text())["all"]
        group = {"hosts": lab["children"]["lab"]["hosts"], "vars": {**lab["vars"], **settings}}
        self.inventory.write_text(yaml.safe_dump({"gua_controller": group}))

    def there(self) -> set[str]:
        """What of us lies on the host."""
        return set(self.host.run("bash", "-c", f"ls -d {PLACES} 2>/dev/null || true").split())

    def job(self, name: str) -> str:
        """Start a service and wait for its end; how it ended, by systemd's word."""
        with contextlib.suppress(HostFailed):
            self.host.run("systemctl", "start", f"{name}.service", timeout_s=300)
        return self.host.run("systemctl", "show", "-P", "Result", f"{name}.service").strip()

    def page(self) -> str:
        """The page, as somebody sees it who may do nothing else on the host."""
        return self.host.run("runuser", "-u", "nobody", "--", "cat", PAGE)

    def controller(self, *options: str, **variables: str) -> Run:
        return self.play("controller.yml", *options, wheel=self.wheel, **variables)


@pytest.fixture(scope="module")
def tower(lab: Lab) -> Tower:
    tower = Tower(lab)
    put(tower.host, "/usr/sbin/sendmail", SENDMAIL, 0o755)
    tower.host.run("install", "-d", "-m", "0700", "/var/spool/closed")
    tower.host.run("install", "-m", "4755", "/usr/bin/tee", "/usr/local/bin/drop")
    if "pull" not in COMMANDS:
        put(tower.host, STAND_IN, PULL, 0o644)
    line = tower.host.run("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    machine = tower.host.run("uname", "-m").strip()
    made = tower.play("wheelhouse.yml", "-e", f'{{"gua_only": ["{line}"], "gua_machine": "{machine}"}}')
    assert made.status == 0, made.output
    return tower


def put(host: LabHost, path: str, text: str, mode: int) -> None:
    file = host.path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


def test_a_rehearsal_changes_nothing_and_a_second_run_neither(tower: Tower) -> None:
    before = tower.there()
    rehearsed = tower.controller("--check", "--diff")
    assert (rehearsed.status, rehearsed.result("tower")) == (0, "would deploy"), rehearsed.output
    assert tower.there() == before
    deployed = tower.controller("--diff", "-vvv")
    assert (deployed.status, deployed.result("tower")) == (0, "deployed"), deployed.output
    assert deployed.changed["tower"] == rehearsed.changed["tower"]
    assert "not known of gpu01, gpu02" in deployed.rows["tower"][-1]  # the one has no agent yet, the other is not there
    assert "PRIVATE KEY" not in rehearsed.output + deployed.output
    again = tower.controller()
    assert (again.status, again.changed["tower"], again.result("tower")) == (0, 0, "unchanged"), again.output


def test_the_page_is_open_to_everybody_and_the_rest_to_nobody(tower: Tower) -> None:
    tower.job("gua-fleet-free")  # waits for the one that the timer started, if that is still at it
    owners = tower.host.run(
        "stat", "-c", "%U:%G %a", "/opt/gua-fleet", SETTINGS, f"{SETTINGS}/gua-fleet.yml", f"{SETTINGS}/inventory.yml",
        DATA, f"{DATA}/.ssh/id_ed25519", f"{DATA}/reports", PAGE.rpartition("/")[0], PAGE,
    )  # fmt: skip
    assert owners.splitlines() == [
        "root:root 755", "root:gua-fleet 750", "root:gua-fleet 640", "root:gua-fleet 640",
        "gua-fleet:gua-fleet 750", "gua-fleet:gua-fleet 600", "gua-fleet:gua-fleet 750",
        "gua-fleet:gua-fleet 755", "gua-fleet:gua-fleet 644",
    ]  # fmt: skip
    with pytest.raises(HostFailed, match="Permission denied"):
        tower.host.run("runuser", "-u", "nobody", "--", "ls", DATA)


def test_the_timers_run_and_the_page_tells_who_is_free_and_who_is_silent(tower: Tower) -> None:
    timers = [f"gua-fleet-{job}.timer" for job in ("pull", "free", "mail")]
    for asked in ("is-active", "is-enabled"):
        tower.host.run("systemctl", asked, *timers)
    end = time.monotonic() + 300
    while not all(tower.host.run("systemctl", "show", "-P", "LastTriggerUSec", each).strip() for each in timers[:2]):
        assert time.monotonic() < end, "the timers started nothing"
        time.sleep(0.5)
    tower.host.run(
        "systemd-run", "--quiet", "--unit=agent", "--uid=reader", "--setenv=HOME=/home/reader", "--service-type=notify",
        "--setenv=GUA_IDENTITY_TRUST_PID_NAMESPACE=true", GUA, "daemon", "--foreground", "--interval", "20s",
    )  # fmt: skip
    while "1 card free: gpu01:0" not in tower.page():
        assert tower.job("gua-fleet-free") == "success"
        assert time.monotonic() < end, tower.page()
    assert "<td>gpu02</td>" in tower.page()
    assert tower.job("gua-fleet-pull") == "success"
    # by hand, the same history
    by_hand = ("runuser", "-u", "gua-fleet", "--", "gua-fleet", "store", "info", "--config")
    assert f"{DATA}/fleet.db" in tower.host.run(*by_hand, f"{SETTINGS}/gua-fleet.yml")


def test_the_report_of_last_week_is_mailed_and_kept(tower: Tower) -> None:
    assert tower.job("gua-fleet-mail") == "success"
    given, *mail = tower.host.run("cat", "/var/spool/closed/sent").splitlines()
    assert given == "given: -t -i"
    assert "To: ops@example.org" in mail
    week = tower.host.run("date", "--date=7 days ago", "+%G-W%V").strip()
    assert tower.host.run("ls", f"{DATA}/reports").split() == [f"{week}.eml"]


def test_that_no_host_can_be_asked_is_a_failure_that_shows_and_the_page_says_so(tower: Tower) -> None:
    tower.host.run("truncate", "--size=0", f"{DATA}/.ssh/known_hosts")
    assert tower.job("gua-fleet-free") == "exit-code"
    assert "gua-fleet-free.service" in tower.host.run("systemctl", "--failed", "--plain", "--no-legend")
    assert "<h1>Which cards are free is not known" in tower.page()


@pytest.mark.lab_full
def test_what_cannot_work_is_refused_and_the_services_keep_what_they_had(tower: Tower) -> None:
    kept = ("sh", "-c", f"cat {SETTINGS}/* /etc/systemd/system/gua-fleet-*; readlink /opt/gua-fleet/current")
    before = tower.host.run(*kept)
    for variables, words in (
        ({"page": f"{DATA}/free.html"}, "everybody may read it"),
        ({"store": "/srv/fleet.db"}, "neither a file below"),
        ({"memory_max": "plenty"}, "is a size such as"),
        ({"environment_file": "/etc/none"}, "has no file /etc/none"),
        ({"known_hosts_src": "none"}, f"There is no {tower.lab.directory}/none on this machine"),
        ({"free_every": "1s"}, "--refresh"),
    ):
        run = tower.controller(**{f"gua_controller_{name}": value for name, value in variables.items()})
        assert (run.status, run.result("tower")) == (2, "failed"), run.output
        assert words in run.rows["tower"][-1]
    good = tower.fleet.read_text()
    tower.fleet.write_text("all: {hosts: [")
    run = tower.controller()
    tower.fleet.write_text(good)
    assert (run.status, run.result("tower")) == (2, "failed"), run.output
    assert "YAML" in run.rows["tower"][-1]
    assert tower.host.run(*kept) == before


@pytest.mark.lab_full
def test_a_release_that_cannot_read_the_agents_is_not_switched_to_unless_that_is_asked_for(
    tower: Tower, tmp_path: Path
) -> None:
    running = tower.host.run("readlink", "/opt/gua-fleet/current")
    later = alter_wheel(tower.wheel, tmp_path, "0.9.9", READS_LATER_REPORTS)
    refused = tower.play("controller.yml", wheel=later)
    assert (refused.status, refused.result("tower")) == (2, "failed"), refused.output
    assert "could not read gpu01: agent " in refused.rows["tower"][-1]
    assert "writes gua.report/1; this gua-fleet 0.9.9 reads gua.report/2: upgrade the agent" in refused.output
    assert tower.host.run("readlink", "/opt/gua-fleet/current") == running
    assert tower.job("gua-fleet-free") == "success"
    taken = tower.play("controller.yml", wheel=later, gua_controller_allow_unreadable="true")
    assert (taken.status, taken.result("tower")) == (0, "deployed"), taken.output
    assert "not known of gpu02" in taken.rows["tower"][-1]
    back = tower.controller(gua_controller_allow_downgrade="true")
    assert (back.status, tower.host.run("readlink", "/opt/gua-fleet/current")) == (0, running), back.output


@pytest.mark.lab_full
def test_a_page_that_moves_is_not_left_behind(tower: Tower) -> None:
    elsewhere = "/srv/gpus/free.html"
    for there, gone in ((elsewhere, PAGE), (PAGE, elsewhere)):
        run = tower.controller(gua_controller_page=there)
        assert (run.status, run.result("tower")) == (0, "deployed"), run.output
        assert not tower.host.path(gone).exists()
        tower.job("gua-fleet-free")
        assert tower.host.path(there).exists()


@pytest.mark.lab_full
def test_what_is_not_wanted_any_more_goes_with_its_page(tower: Tower) -> None:
    before = tower.there()
    run = tower.controller(gua_controller_free_every="")
    assert (run.status, run.result("tower")) == (0, "deployed"), run.output
    gone = before - tower.there()
    units = [f"/etc/systemd/system/gua-fleet-free.{kind}" for kind in ("service", "timer")]
    assert gone == {PAGE, *units, "/etc/systemd/system/timers.target.wants/gua-fleet-free.timer"}
    tower.host.run("systemctl", "is-active", "gua-fleet-pull.timer", "gua-fleet-mail.timer")


def test_what_is_taken_away_leaves_its_history_until_that_is_asked_for_too(tower: Tower) -> None:
    tower.host.run("systemctl", "stop", "agent")
    run = tower.controller(gua_controller_state="absent")
    assert (run.status, run.result("tower")) == (0, "removed"), run.output
    assert tower.there() == {DATA, SETTINGS}
    known = ("systemctl", "list-units", "--all", "--plain", "--no-legend", "--state=loaded", "gua-fleet-*")
    assert tower.host.run(*known) == ""
    run = tower.controller(gua_controller_state="absent", gua_controller_purge="true")
    assert (run.status, run.result("tower")) == (0, "removed"), run.output
    assert tower.there() == set()
    assert "gua-fleet" not in tower.host.path("/etc/passwd").read_text()


@pytest.mark.lab_full
def test_two_runs_at_once_do_not_harm_each_other_and_anothers_command_stays(tower: Tower) -> None:
    put(tower.host, COMMAND, "#!/bin/sh\necho mine\n", 0o755)
    with ThreadPoolExecutor(2) as pool:
        runs = [run.result() for run in [pool.submit(tower.controller) for _ in range(2)]]
    for run in runs:
        assert (run.status, run.result("tower")) == (0, "deployed"), run.output
        assert f"{COMMAND} is not ours" in run.rows["tower"][-1]
    again = tower.controller()
    assert (again.status, again.changed["tower"]) == (0, 0), again.output
    tower.controller(gua_controller_state="absent", gua_controller_purge="true")
    assert (tower.there(), tower.host.run(COMMAND)) == ({COMMAND}, "mine\n")
