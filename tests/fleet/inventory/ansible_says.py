"""Ansible's own answer to where it would connect: it runs, with a program in the place of ssh that takes notes."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gua_fleet.model import Host

ANSIBLE = Path(sys.executable).parent
_NOTED = "name="


@dataclass(frozen=True)
class Way:
    """How a host is reached. identity: the first file named for it, None where none is."""

    address: str
    port: int
    user: str
    jump: str | None
    proxy_command: str | None
    identity: str | None


def ansible_says(folder: Path, arguments: Sequence[str]) -> dict[str, Way]:
    """Host -> way, for every host that Ansible would connect to with ssh. folder: for the notes, and the cwd."""
    notes = folder / "ssh-notes"
    notes.mkdir()
    stand_in = folder / "ssh-stand-in"
    program = f"import json, os, sys\nopen({str(notes)!r} + f'/{{os.getpid()}}', 'w').write(json.dumps(sys.argv[1:]))\n"
    stand_in.write_text(f'#!/bin/sh\n{shlex.join([sys.executable, "-c", program])} "$@"\nexit 255\n')
    stand_in.chmod(0o755)
    subprocess.run(
        [ANSIBLE / "ansible", "all", *arguments, "-m", "raw", "-a", _NOTED + "{{ inventory_hostname }}", "-f", "4"],
        env={**os.environ, "ANSIBLE_SSH_EXECUTABLE": str(stand_in), "ANSIBLE_SSH_RETRIES": "0", "ANSIBLE_BECOME": "0"},
        capture_output=True,
        cwd=folder,
    )
    return dict(_way(json.loads(note.read_text())) for note in notes.iterdir())


def _way(argv: list[str]) -> tuple[str, Way]:
    """What OpenSSH makes of the command line it would have been given."""
    options = [word for word in argv[:-1] if word not in ("-tt", "-vvv")]
    done = subprocess.run(["ssh", "-F", "none", "-G", *options], capture_output=True, text=True, check=True)
    said: dict[str, str] = {}
    for line in done.stdout.splitlines():
        keyword, _, value = line.partition(" ")
        said.setdefault(keyword, value)
    name = argv[-1].rpartition(_NOTED)[2].strip("'\"")
    named_identity = any("identityfile" in word.lower() for word in options) or "-i" in options
    return name, Way(
        address=said["hostname"],
        port=int(said["port"]),
        user=said["user"],
        jump=_not_none(said.get("proxyjump")),
        proxy_command=_not_none(said.get("proxycommand")),
        identity=os.path.expanduser(said["identityfile"]) if named_identity else None,
    )


def we_say(host: Host) -> Way:
    """The same of a host as understood here."""
    return Way(
        address=host.address.lower(),  # ssh -G lowers it
        port=host.port or 22,
        user=host.user or getpass.getuser(),
        jump=host.jump,
        proxy_command=host.proxy_command,
        identity=os.path.expanduser(host.identity_file) if host.identity_file else None,
    )


def _not_none(value: str | None) -> str | None:
    return None if value in (None, "none") else value


HAS_SSH = shutil.which("ssh") is not None
