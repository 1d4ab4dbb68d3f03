"""Which database a command means, and why that one.

`--db`, then `GUA_DB`, then the settings file, then the system's where it exists, then the user's own.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from gua.errors import ConfigError
from gua.filesystem import is_network_path
from gua.text import shown

SYSTEM_DATABASE = Path("/var/lib/gua/gua.db")


@dataclass(frozen=True)
class Location:
    """A database path and, for people, what decided it."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"{shown(str(self.path), 200)} ({self.why})"


def database_path(
    option: Optional[Path],
    configured: Optional[Path],
    environ: Mapping[str, str] = os.environ,
    system: Path = SYSTEM_DATABASE,
) -> Location:
    """The database to use; whether it is there is for the caller to find out.

    option: what `--db` named. configured: `store.path` of the settings.
    Raises ConfigError when nothing names one and this user has no home directory.
    """
    if option is not None:
        return Location(option, "named by --db")
    if environ.get("GUA_DB"):
        return Location(Path(environ["GUA_DB"]), "named by GUA_DB")
    if configured is not None:
        return Location(configured, "named by the settings")
    if _may_exist(system):
        return Location(system, "this host's own")
    return Location(_user_directory(environ) / "gua.db", "this user's own")


def _may_exist(path: Path) -> bool:
    """Whether the path is there, or may be, in a directory this user is not let into.

    A plain user must hear that he lacks the right to read the system's database, not that there is none.
    """
    try:
        os.stat(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _user_directory(environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(home):
        raise ConfigError("this user has no home directory to keep a database in; name one with --db")
    own = Path(home) / ".gua"
    # A home that many hosts mount must not hold one database that all of them write.
    return own / "hosts" / socket.gethostname() if is_network_path(own) else own
