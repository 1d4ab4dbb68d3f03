"""Accounts with other login shells that exist for one sshd only: its /etc/passwd is another one, in a mount namespace.

They have the number of whoever runs the tests, root, so that they may read what the tests wrote.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

# name of the account -> its shell, and the .bashrc it has
ACCOUNTS: dict[str, tuple[str, str]] = {
    "fish": ("fish", ""),
    "csh": ("csh", ""),
    "nologin": ("nologin", ""),
    "noise-before": ("bash", "echo hello from .bashrc; printf '\\033]0;title\\007'\n"),
    "noise-after": ("bash", "trap 'echo good bye' EXIT\n"),
    "rc-exits": ("bash", "exit 0\n"),
    "rc-reads": ("bash", "read answer\n"),
}


def can_have_accounts() -> bool:
    """Whether this is root and may have a mount namespace of its own, which a container may forbid."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


needs_accounts = pytest.mark.skipif(not can_have_accounts(), reason="needs root and `unshare -m`")


def shell_of(account: str) -> str | None:
    """Path of the account's shell; None where it is not installed."""
    shell = ACCOUNTS[account][0]
    return shutil.which(shell, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def wrapper(folder: Path) -> tuple[str, ...]:
    """What to put before a command, so that it finds the accounts in /etc/passwd."""
    folder.mkdir()
    lines = Path("/etc/passwd").read_text().splitlines()
    for name, (_, rc) in ACCOUNTS.items():
        home = folder / name
        home.mkdir()
        (home / ".bashrc").write_text(rc)
        shell = shell_of(name)
        if shell:
            lines.append(f"{name}:x:0:0::{home}:{shell}")
    passwd = folder / "passwd"
    passwd.write_text("\n".join(lines) + "\n")
    return ("unshare", "-m", "/bin/sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', str(passwd))
