"""Runs our playbooks on lab hosts as an administrator would, and reads what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gua_fleet.agent_wheel import find_checkout, make_agent_wheel
from gua_fleet.wheelhouse import default_cache
from tests.lab.harness import Lab
from tests.lab.host import LabHost
from tests.nvml_stub.library import StubUnavailable, build
from tests.nvml_stub.scene import Card, Scene

PLAYBOOKS = Path(__file__).parents[2] / "ansible"
# A loaded machine takes its time; whoever hangs is found all the same.
PLAY_TIMEOUT_S = 600
SETTINGS = {
    "gua_agent_on_no_gpu": "install",  # the stub's cards are on no PCI bus
    "gua_agent_trust_pid_namespace": True,
    "gua_agent_interval": "1s",
}
# For tests that are not about how long one waits.
QUICK = {"gua_agent_settle_s": 2, "gua_agent_verify_timeout_s": 30}
_RECAP = re.compile(r"^(\S+) +: ok=\d+ +changed=(\d+) +unreachable=(\d+) +failed=(\d+)", re.M)


@dataclass(frozen=True)
class Run:
    """status: of ansible-playbook. changed, failed: tasks by host. rows: host -> the table's other columns."""

    status: int
    output: str
    changed: dict[str, int]
    failed: dict[str, int]
    rows: dict[str, list[str]]

    def result(self, host: str) -> str:
        """What the table at the end says became of a host."""
        return self.rows[host][2]


def read_run(status: int, output: str) -> Run:
    recap = [(name, int(changed), int(failed)) for name, changed, _, failed in _RECAP.findall(output)]
    _, _, table = output.partition("\nHOSTS ***")
    lines = [re.split(r"  +", line.rstrip()) for line in table.splitlines()[2:]]
    return Run(
        status=status,
        output=output,
        changed={name: changed for name, changed, _ in recap},
        failed={name: failed for name, _, failed in recap},
        rows={line[0]: line[1:] for line in lines if len(line) >= 4},
    )


class Site:
    """Lab hosts with a stand-in for a GPU each, and the administrator who deploys to them."""

    def __init__(self, lab: Lab, *names: str, suites: Mapping[str, str] | None = None, **settings: Any) -> None:
        """suites: of hosts that are not of the lab's own."""
        for name, suite in (suites or {}).items():
            lab.boot(name, suite=suite)
        lab.boot(*(name for name in names if name not in (suites or {})))
        for name in names:
            give_card(lab, lab.hosts[name])
        self.lab = lab
        self.inventory = lab.write_inventory(f"{names[0]}.yml", user="deploy", become=True, **{**SETTINGS, **settings})
        self.wheel = make_agent_wheel(find_checkout(), default_cache() / "wheels")

    def play(
        self, playbook: str, *options: str, wheel: Path | None = None, tools: Path | None = None, **variables: str
    ) -> Run:
        """Run a playbook. wheel: deployed instead of this checkout's own. tools: folder of another ansible-playbook."""
        given = {**variables, **({"gua_wheel": str(wheel)} if wheel else {})}
        extra = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]
        tools = tools or Path(sys.executable).parent
        command = [str(tools / "ansible-playbook"), "-i", str(self.inventory), str(PLAYBOOKS / playbook)]
        done = subprocess.run(
            [*command, *extra, *options], cwd=PLAYBOOKS, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=PLAY_TIMEOUT_S, env=self._environment(tools),
        )  # fmt: skip
        # An expression that the next ansible-core refuses is a fault today.
        assert "[DEPRECATION WARNING]" not in done.stdout, done.stdout
        return read_run(done.returncode, done.stdout)

    def _environment(self, tools: Path) -> dict[str, str]:
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        return {**self.lab.environment(), "PATH": path, "XDG_CACHE_HOME": str(default_cache().parent)}

    @property
    def version(self) -> str:
        """The checkout's own."""
        return self.wheel.name.split("-")[1]


def give_card(lab: Lab, host: LabHost) -> None:
    """One H100 that works at 50 %, behind the stub of NVML."""
    try:
        library = build(lab.directory)
    except StubUnavailable as exc:
        pytest.fail(str(exc)) if os.environ.get("GUA_LAB_REQUIRED") == "1" else pytest.skip(str(exc))
    host.path("/usr/lib/libnvidia-ml.so.1").write_bytes(library.read_bytes())
    Scene(cards=(Card(uuid=f"GPU-{host.name}", name="NVIDIA H100", util=50),)).save(host.path("/etc/gua-nvml-scene"))


@dataclass(frozen=True)
class Installed:
    """What of us is on a host. files: path -> content of what the role writes and what was made of it."""

    pid: str
    release: str
    version: str
    files: dict[str, str]


WRITTEN = ("/etc/gua/agent.toml", "/etc/systemd/system/gua-agent.service", "/opt/gua/started-with")


def look(host: LabHost) -> Installed:
    """Raises HostFailed where no agent runs."""
    host.run("systemctl", "is-active", "--quiet", "gua-agent")
    return Installed(
        pid=host.run("systemctl", "show", "-P", "MainPID", "gua-agent").strip(),
        release=host.run("readlink", "/opt/gua/current").strip(),
        version=host.run("/usr/local/bin/gua", "--version").split()[-1],
        files={path: host.run("cat", path) for path in WRITTEN},
    )


PLACES = "/opt/gua /etc/gua /var/lib/gua /usr/local/bin/gua /etc/systemd/system/gua-agent.service"


def paths(host: LabHost) -> set[str]:
    """What of us lies on the host; its user too, as "gua"."""
    return set(host.run("sh", "-c", f"ls -d {PLACES} 2>/dev/null; grep -ow ^gua /etc/passwd; true").split())


def history(host: LabHost) -> str:
    """The number that names the database for good."""
    printed = host.run("sh", "-c", "gua report --format json --since 1h --db /var/lib/gua/gua.db")
    return str(json.loads(printed)["host"]["store_id"])
