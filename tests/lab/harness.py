"""Boots a small fleet of real systemd hosts on this machine and takes all of it away again.

with open_lab() as lab:
    lab.boot("atlas", "boreas")
    lab.hosts["atlas"].run("hostname")
    inventory = lab.write_inventory("deploy.yml", user="deploy", become=True)
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.lab.base import ensure_base, machine_suite
from tests.lab.host import LabHost
from tests.lab.needs import LabUnavailable, prepare_machine
from tests.lab.slot import Slot, take_slot

# Each systemd takes a good number of these, and the kernel's default of 128 is used up by a few hosts.
INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_NEEDED = 1024


class Lab:
    """The hosts of one run, by name, and the one SSH key that opens them."""

    def __init__(self, slot: Slot, base: Path) -> None:
        self.hosts: dict[str, LabHost] = {}
        self.directory = slot.directory
        self._slot = slot
        self._base = base
        self._key = self.directory / "key"
        self._known_hosts = self.directory / "known_hosts"
        self._controls = self.directory / "control"

    def boot(self, *names: str, suite: str | None = None) -> None:
        """Boot hosts of these names side by side; returns when all are up. suite: None: the lab's own."""
        self._prepare()
        base = self._base if suite is None else ensure_base(suite)
        for name in names:
            host = LabHost(self._slot, len(self.hosts) + 1, name, base)
            self.hosts[name] = host
            host.create(self.public_key)
            host.boot()
        for name in names:
            self.hosts[name].wait_running()
        self._known_hosts.write_text("".join(host.known_host_line() for host in self.hosts.values()))

    @property
    def address(self) -> str:
        """Where the hosts reach this machine, once one was booted."""
        return self._slot.address(0)

    @property
    def public_key(self) -> str:
        return self._key.with_suffix(".pub").read_text().strip()

    def write_inventory(self, name: str, *, user: str, become: bool = False, **variables: Any) -> Path:
        """An inventory of all hosts as `user`, in a file `name`; `variables` hold for every host."""
        ssh = f"-o UserKnownHostsFile={self._known_hosts} -o StrictHostKeyChecking=yes"
        connection = {
            "ansible_user": user,
            "ansible_become": become,
            "ansible_ssh_private_key_file": str(self._key),
            "ansible_ssh_common_args": ssh,
        }
        hosts = {host.name: {"ansible_host": host.address} for host in self.hosts.values()}
        inventory = {"all": {"children": {"lab": {"hosts": hosts}}, "vars": {**connection, **variables}}}
        path = self.directory / name
        path.write_text(yaml.safe_dump(inventory, sort_keys=False))
        return path

    def environment(self) -> dict[str, str]:
        """What Ansible and gua-fleet run with: nothing of the person's own SSH set-up, no shared folders."""
        kept = {
            name: os.environ[name]
            for name in ("PATH", "PYTHONPATH", "LANG", "ANSIBLE_PIPELINING", "ANSIBLE_VAULT_PASSWORD_FILE")
            if name in os.environ
        }
        ours = {
            "HOME": str(self.directory),
            "ANSIBLE_HOME": str(self.directory / "ansible"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self._controls),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_DEPRECATION_WARNINGS": "true",
            "ANSIBLE_INJECT_FACT_VARS": "false",  # as ansible-core 2.24 will have it for good
        }
        return {**kept, **ours}

    def close(self) -> None:
        """Switch all hosts off, and end the SSH connections that Ansible left open to them."""
        for control in self._controls.glob("*"):
            subprocess.run(["ssh", "-O", "exit", "-o", f"ControlPath={control}", "lab"], capture_output=True)
        for host in self.hosts.values():
            host.power_off()
        self.hosts.clear()

    def _prepare(self) -> None:
        if self._key.exists():
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        if int(INOTIFY_LIMIT.read_text()) < INOTIFY_NEEDED:
            INOTIFY_LIMIT.write_text(str(INOTIFY_NEEDED))
        for command in (
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gua-lab", "-f", str(self._key)],
            ["ip", "link", "add", self._slot.bridge, "type", "bridge", "forward_delay", "0"],
            ["ip", "address", "add", f"{self._slot.address(0)}/24", "dev", self._slot.bridge],
            ["ip", "link", "set", self._slot.bridge, "up"],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise LabUnavailable(f"{' '.join(command)} failed: {done.stderr.strip()}")


@contextmanager
def open_lab(suite: str | None = None) -> Iterator[Lab]:
    """A lab with nothing booted yet; everything in it is gone afterwards. Raises LabUnavailable with the reason.

    suite: the Debian release of its hosts; None: as machine_suite says.
    """
    prepare_machine()
    base = ensure_base(suite or machine_suite())
    with take_slot() as slot:
        lab = Lab(slot, base)
        try:
            yield lab
        finally:
            lab.close()
