"""A command that root starts on somebody else's database becomes that somebody first.

Otherwise SQLite's side files end up root's, and from then on the owner's daemon fails every write.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys
from pathlib import Path
from typing import Optional

from gua.errors import GuaError
from gua.text import shown, storable

# Files of a system database are readable by its group and by nobody else (DESIGN 4).
_SYSTEM_UMASK = 0o027


def become_owner(database: Path) -> Optional[str]:
    """Give up root for the owner of the database, or of the directory it will lie in, for good.

    Returns the name taken; None when there was nothing to do: not root, or root's own.
    Raises GuaError when that user could not go on, because this program is hidden from him.
    """
    if os.geteuid() != 0:
        return None
    owner = _owner(database)
    if owner is None or owner.st_uid == 0:
        return None
    name = _take_identity(owner)
    if not os.access(sys.executable, os.X_OK) or not os.access(__file__, os.R_OK):
        raise GuaError(
            f"{shown(str(database), 200)} belongs to {name}, who cannot read this program in "
            f"{shown(os.path.dirname(__file__), 200)}; install it where everybody can"
        )
    return name


def owner_of(path: Path) -> Optional[tuple[int, int]]:
    """Uid and gid that a file made beside `path` should have when root makes it; None: whoever makes it."""
    owner = _owner(path) if os.geteuid() == 0 else None
    return None if owner is None else (owner.st_uid, owner.st_gid)


def _owner(database: Path) -> Optional[os.stat_result]:
    """Status of the database or, before it exists, of the nearest directory above it; None when there is none."""
    for path in (database, *database.absolute().parents):
        try:
            status = os.stat(path)
        except OSError:
            continue
        # /tmp belongs to nobody in particular
        return None if status.st_mode & stat.S_ISVTX else status
    return None


def _take_identity(owner: os.stat_result) -> str:
    try:
        entry = pwd.getpwuid(owner.st_uid)
        name = storable(entry.pw_name)
        # The directory's group is the readers' group: what is written there must be theirs to read.
        os.initgroups(entry.pw_name, owner.st_gid)
    except KeyError:
        name = f"uid {owner.st_uid}"
        os.setgroups([])
    os.setgid(owner.st_gid)
    os.setuid(owner.st_uid)
    os.umask(_SYSTEM_UMASK)
    return name
