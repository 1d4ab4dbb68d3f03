"""From an inventory file to a table over a real sshd: Ansible's variables are what the connection is made of."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

from tests.fleet.cli.test_commands import READY, _run
from tests.fleet.ssh.sshd import Keys, Sshd, closed_port, write_agent


def test_doctor_over_ssh_with_the_variables_of_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    keys = Keys(tmp_path / "keys")
    agent, known = write_agent(tmp_path / "agent" / "gua", READY), tmp_path / "known_hosts"
    with Sshd(tmp_path / "sshd", keys) as server, closed_port() as port:
        known.write_text(server.known_line())
        variables = {
            "number": 1,
            "ansible_host": "127.0.0.{{ number }}",
            "ansible_user": getpass.getuser(),
            "ansible_ssh_private_key_file": str(keys.client),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={known} -o GlobalKnownHostsFile=none",
            "gua_command": str(agent),
        }
        hosts = {
            "good": {"ansible_port": server.port},
            "down": {"ansible_port": port},
            "stranger": {"ansible_port": server.port, "ansible_ssh_private_key_file": str(keys.stranger)},
            "lost": {"ansible_port": server.port, "ansible_host": "{{ nowhere }}"},
        }
        (tmp_path / "inventory.yml").write_text(json.dumps({"all": {"vars": variables, "hosts": hosts}}))
        done = _run(tmp_path, "doctor", "--json")
    outcomes = {host["name"]: host["outcome"] for host in json.loads(done.stdout)["hosts"]}
    assert outcomes == {"good": "ok", "down": "unreachable", "stranger": "auth-failed", "lost": "skipped"}
    assert done.returncode == 1
    assert "lost is skipped: ansible_host cannot be resolved: 'nowhere' is undefined" in done.stderr
