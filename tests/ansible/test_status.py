"""`status.yml` where no host answers: written down all the same, whatever an earlier run wrote."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

ANSIBLE = Path(__file__).parents[2] / "ansible"


def test_hosts_that_do_not_answer_are_in_the_file_and_nothing_old_is(tmp_path: Path) -> None:
    written = tmp_path / "status.json"
    written.write_text("of yesterday")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # ours, and nobody listens
        nobody = {"ansible_host": "127.0.0.1", "ansible_port": closed.getsockname()[1]}
        inventory = tmp_path / "inventory.json"
        inventory.write_text(json.dumps({"all": {"hosts": {"atlas": nobody, "boreas": nobody}}}))
        command = [sys.executable, "-m", "ansible", "playbook", "-i", str(inventory), str(ANSIBLE / "status.yml")]
        done = subprocess.run(
            [*command, "-e", f"gua_status_json={written}"], capture_output=True, text=True, cwd=ANSIBLE,
            env={**os.environ, "ANSIBLE_HOME": str(tmp_path / "home"), "ANSIBLE_NOCOLOR": "1", "HOME": str(tmp_path)},
        )  # fmt: skip
    assert done.returncode == 4, done.stdout + done.stderr
    silent = [{"healthy": None, "host": name, "reason": "did not answer"} for name in ("atlas", "boreas")]
    assert json.loads(written.read_text()) == silent
    assert done.stdout.count("unreachable: ") == 2
