"""What this machine must have to boot lab hosts; missing Debian packages are installed when we are root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

# command -> Debian package that brings it
COMMANDS = {
    "systemd-nspawn": "systemd-container",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "gcc": "gcc",
}
# gcc alone has no headers to compile against.
HEADERS = {Path("/usr/include/stdlib.h"): "libc6-dev"}


class LabUnavailable(Exception):
    """This machine cannot boot lab hosts; the text says why and what would help."""


def prepare_machine() -> None:
    """Make sure that hosts can be booted here. Raises LabUnavailable with one line of reason."""
    if sys.platform != "linux":
        raise LabUnavailable("the lab boots Linux hosts: it needs Linux")
    if os.geteuid() != 0:
        raise LabUnavailable("the lab boots real hosts in namespaces: it needs root")
    _install(_missing_packages())
    cgroup2_mount()


def _missing_packages() -> list[str]:
    missing = {package for command, package in COMMANDS.items() if shutil.which(command) is None}
    missing |= {package for header, package in HEADERS.items() if not header.exists()}
    return sorted(missing)


def _install(packages: list[str]) -> None:
    if not packages:
        return
    if shutil.which("apt-get") is None:
        raise LabUnavailable(f"the lab needs {', '.join(packages)}, and there is no apt-get here to install them")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise LabUnavailable(f"{' '.join(command)} failed: {last_line(done.stderr)}")


def cgroup2_mount() -> Path:
    """Where this machine mounts cgroup v2 (alone or beside v1)."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, source = line.partition(" - ")
        if source.split()[0] == "cgroup2":
            return Path(fields.split()[4])
    raise LabUnavailable("no cgroup v2 is mounted here, and the lab's hosts need it")


def last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"
