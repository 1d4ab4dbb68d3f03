"""The controller on a real host: what its timers do there, and that nothing of it stays. The tests build on each other.

The host is its own GPU host: the daemon samples a made-up card as an ordinary user, whom the controller reaches by SSH.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest
import yaml

from gua_fleet.cli.main import COMMANDS
from tests.lab.deployment import Run, Site
from tests.lab.harness import Lab
from tests.lab.host import HostFailed, LabHost

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

PAGE = "/var/lib/gua-fleet-page/free.html"
PLACES = (
    f"/opt/gua-fleet /etc/gua-fleet /var/lib/gua-fleet {PAGE} /usr/local/bin/gua-fleet /etc/systemd/system/gua-fleet-*"
)
SENDMAIL = '#!/bin/sh\n{ echo "given: $*"; cat; } >/var/spool/mail/sent\n'
# Until there is a pull: the timer and its service are as real as they will be.
PULL = "[Service]\nExecStart=\nExecStart=/bin/sh -c 'date >>/var/lib/gua-fleet/pulled'\n"


class Tower(Site):
    """The lab's one host, and the administrator who makes it the controller."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab, "tower")
        self.host = lab.hosts["tower"]
        self.host.add_user("reader", lab.public_key)
        self.fleet = lab.directory / "fleet.yml"
        agent = {"ansible_host": self.host.address, "gua_command": "/opt/gua-fleet/current/bin/gua"}
        hosts = {"gpu01": agent, "gpu02": {"ansible_host": "198.18.255.250"}}
        self.fleet.write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": {"ansible_user": "reader"}}}))
        settings = {
            "gua_controller_inventory_src": str(self.fleet),
            "gua_controller_known_hosts_src": str(lab.directory / "known_hosts"),
            "gua_controller_ssh_key_src": str(lab.directory / "key"),
            "gua_controller_settings": {"timeout": "10s"},
            "gua_controller_mail_to": ["ops@example.org"],
        }
        written = yaml.safe_load(self.inventory.read_text())["all"]
        inventory = {"gua_controller": {"hosts": written["children"]["lab"]["hosts"], "vars": written["vars"]}}
        inventory["gua_controller"]["vars"] |= settings
        self.inventory.write_text(yaml.safe_dump(inventory))

    def controller(self, *options: str, **variables: str) -> Run:
        return self.play("controller.yml", *options, wheel=self.wheel, **variables)

    def there(self) -> set[str]:
        """What of us lies on the host."""
        return set(self.host.run("sh", "-c", f"ls -d {PLACES} 2>/dev/null || true").split())

    def failed(self) -> set[str]:
        return set(
            self.host.run("systemctl", "--failed", "--plain", "--no-legend", "list-units", "gua-fleet-*").split()
        )


@pytest.fixture(scope="module")
def tower(lab: Lab) -> Tower:
    tower = Tower(lab)
    put(tower.host, "/usr/sbin/sendmail", SENDMAIL, 0o755)
    tower.host.run("install", "-d", "-m", "1777", "/var/spool/mail")
    if "pull" not in COMMANDS:
        put(tower.host, "/etc/systemd/system/gua-fleet-pull.service.d/stand-in.conf", PULL, 0o644)
    return tower


def put(host: LabHost, path: str, text: str, mode: int) -> None:
    file = host.path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


def wait_for(what: str, condition: Callable[[], bool], deadline_s: float = 120) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {deadline_s:.0f} s"
        time.sleep(0.2)


def result(host: LabHost, job: str) -> str:
    """How a job's last run ended; empty while it runs or was never started."""
    words = host.run("systemctl", "show", "-P", "ActiveState", "-P", "ExecMainExitTimestamp", "-P", "Result", job)
    state, ended, *_ = [*words.splitlines(), "", ""]
    return words.splitlines()[-1] if state in ("inactive", "failed") and ended else ""


def run_job(host: LabHost, job: str) -> str:
    """Start it and wait; how it ended."""
    with contextlib.suppress(HostFailed):
        host.run("systemctl", "start", f"{job}.service", timeout_s=120)
    return host.run("systemctl", "show", "-P", "Result", job).strip()


def test_a_rehearsal_changes_nothing_and_a_second_run_neither(tower: Tower) -> None:
    tower.play("wheelhouse.yml", "-e", '{"gua_only": ["3.11", "3.13"], "gua_machine": "x86_64"}')
    before = tower.there()
    rehearsed = tower.controller("--check", "--diff")
    assert (rehearsed.status, rehearsed.result("tower")) == (0, "would deploy"), rehearsed.output
    assert tower.there() == before
    deployed = tower.controller("--diff", "-vvv")
    assert (deployed.status, deployed.result("tower")) == (0, "deployed"), deployed.output
    assert deployed.changed["tower"] == rehearsed.changed["tower"]
    assert "PRIVATE KEY" not in rehearsed.output + deployed.output
    again = tower.controller()
    assert (again.status, again.changed["tower"], again.result("tower")) == (0, 0, "unchanged"), again.output
