"""Who this host is: the names that documents and databases carry."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path


def procfs_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Where procfs is: `GUA_PROCFS_ROOT` or `/proc`."""
    return Path(environ.get("GUA_PROCFS_ROOT") or "/proc")


def hostname() -> str:
    """This host's own name, without the domain part where it carries one."""
    return socket.gethostname().split(".")[0]


def read_machine_id(path: Path = Path("/etc/machine-id")) -> str:
    """The id this installation was given; empty where it has none."""
    return _first_word(path)


def read_boot_id(root: Path) -> str:
    """The id of this boot, from procfs at `root`; empty where the kernel shows none."""
    return _first_word(root / "sys/kernel/random/boot_id")


def _first_word(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
