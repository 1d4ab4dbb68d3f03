"""Runs Ansible's own programs and gives back what they print. The only door to Ansible."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gua_fleet.errors import FleetError

# Plain, stable output whatever the site's ansible.cfg asks for; deprecations are not the reader's business here.
_PLAIN_OUTPUT = {
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_FORCE_COLOR": "0",
    "ANSIBLE_LOAD_CALLBACK_PLUGINS": "0",
    "ANSIBLE_DEPRECATION_WARNINGS": "0",
    "ANSIBLE_LOCALHOST_WARNING": "0",
    "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
    "ANSIBLE_NOCOWS": "1",
    "PYTHONIOENCODING": "utf-8",  # else a name beyond the site's encoding comes as question marks, like any other
}
# A dynamic inventory may ask a slow service; a hung one must not hang the run.
_LIMIT_S = 120.0
_HEADED = re.compile(r"\[?(WARNING|ERROR|DEPRECATION WARNING)\]?(: |!)")


@dataclass(frozen=True)
class AnsibleAnswer:
    """What one Ansible program printed. messages: its warnings and errors, one line each."""

    exit_status: int
    stdout: str
    messages: tuple[str, ...]


def run_ansible(program: str, arguments: Sequence[str]) -> AnsibleAnswer:
    """Run `ansible` or `ansible-inventory`, the one installed beside this Python first.

    Raises FleetError: the program is not there, cannot be started, or does not end within two minutes.
    """
    path = _find(program)
    try:
        done = subprocess.run(
            [path, *arguments],
            env={**os.environ, **_PLAIN_OUTPUT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise FleetError(f"{program} did not end within {_LIMIT_S:.0f} s: is a dynamic inventory hanging?") from exc
    except OSError as exc:
        raise FleetError(f"{path} cannot be started: {exc.strerror}") from exc
    stderr = done.stderr.decode("utf-8", "replace")
    return AnsibleAnswer(done.returncode, done.stdout.decode("utf-8", "replace"), split_messages(stderr))


def split_messages(stderr: str) -> tuple[str, ...]:
    """Ansible's warnings and errors, each on one line: it wraps them at 79 columns."""
    messages: list[list[str]] = []
    for line in stderr.splitlines():
        if _HEADED.match(line) or not messages:
            messages.append([])
        messages[-1].append(line.strip())
    lines = (" ".join(word for word in message if word) for message in messages)
    return tuple(dict.fromkeys(line for line in lines if line))


def _find(program: str) -> str:
    beside = Path(sys.executable).parent / program
    path = str(beside) if os.access(beside, os.X_OK) else shutil.which(program)
    if path is None:
        raise FleetError(f'{program} is not installed: install the "fleet" extra (pip install "gua-fleet[fleet]")')
    return path
