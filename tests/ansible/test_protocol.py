"""`preflight.yml` says which agents this gua-fleet can read, and of whom it does not know."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gua import __version__
from gua_fleet.protocol import READS

ANSIBLE = Path(__file__).parents[2] / "ansible"
THIS = f"this gua-fleet {__version__}"


def installed(root: Path, release: str, documents: Sequence[str]) -> Path:
    """A place for releases as the role makes it, with one that brings these documents' schemas."""
    folder = root / "releases" / release
    schemas = folder / "lib/python3.11/site-packages/gua/schemas"
    schemas.mkdir(parents=True)
    for document in documents:
        (schemas / f"{document.replace('/', '.')}.schema.json").touch()
    (folder / ".complete").touch()
    (root / "current").symlink_to(folder)
    return root


def test_every_host_is_in_what_preflight_says_of_the_agents(tmp_path: Path) -> None:
    newer = [one for one in READS if one != "gua.report/1"] + ["gua.report/2"]
    roots = {
        "atlas": installed(tmp_path / "atlas", "0.1.0-py311-1a2b3c4d", READS),
        "boreas": installed(tmp_path / "boreas", "9.1-py311-1a2b3c4d", newer),
        "ceto": installed(tmp_path / "ceto", "0.0.1-py39-1a2b3c4d", []),
        "doris": tmp_path / "doris",
    }
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": False}
    hosts: dict[str, object] = {name: {**local, "root": str(root)} for name, root in roots.items()}
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # ours, and nobody listens
        hosts["echo"] = {"root": "none", "ansible_host": "127.0.0.1", "ansible_port": closed.getsockname()[1]}
        inventory = tmp_path / "inventory.json"
        no_cards = {"gua_agent_environment": {"GUA_SYSFS_ROOT": str(tmp_path)}}  # then the rest does not matter
        inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": no_cards}}))
        command = [sys.executable, "-m", "ansible", "playbook", "-i", str(inventory), str(ANSIBLE / "preflight.yml")]
        done = subprocess.run(
            [*command, "-e", '{"gua_agent__root": "{{ root }}"}'], capture_output=True, text=True, cwd=ANSIBLE,
            env={**os.environ, "ANSIBLE_HOME": str(tmp_path / "home"), "ANSIBLE_NOCOLOR": "1", "HOME": str(tmp_path)},
        )  # fmt: skip
    told = f"boreas: agent 9.1 writes gua.report/2; {THIS} reads gua.report/1: upgrade gua-fleet here"
    lines = [
        f"atlas: agent 0.1.0 is read by {THIS}",
        told,
        "ceto: not known: agent 0.0.1 does not tell which documents it writes: upgrade the agent",
        "doris: there is no agent yet",
        "echo: not known: it did not answer: ask again when it is there",
    ]
    assert json.dumps(lines)[1:-1].replace('", "', '",\n        "') in done.stdout, done.stdout + done.stderr
    table = done.stdout.partition("HOSTS")[2]
    rows = {line.split()[0]: line for line in table.splitlines() if line.split()}
    assert rows["boreas"].endswith(told.removeprefix("boreas: "))
    assert "is read by" not in rows["atlas"]
    assert rows["unreachable:"].split()[1] == "echo"
    assert done.returncode == 4
