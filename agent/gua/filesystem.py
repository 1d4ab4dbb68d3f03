"""Which file system a path lies on, and whether it has room.

SQLite's write-ahead log needs shared memory, so it needs a local one.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Optional

# FUSE is named fuse.PROGRAM; most of what people mount that way (sshfs, s3fs, glusterfs) is remote.
_NETWORK_TYPES = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "beegfs", "ceph", "gpfs", "gfs2", "ocfs2", "afs", "9p", "panfs"}
    | {"wekafs", "pvfs2", "orangefs", "virtiofs", "fuse", "glusterfs", "vboxsf"}
)

# What SQLite needs to open a database: its log's index is 32 KiB.
_LEAST_BYTES = 256 << 10

_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")


def is_network_path(path: Path) -> bool:
    """Whether the path lies, or would lie, on a network file system."""
    kind = read_filesystem_type(path)
    return kind is not None and is_network_type(kind)


def is_network_type(kind: str) -> bool:
    """Whether a file system type, as mountinfo spells it, is shared between machines."""
    return kind in _NETWORK_TYPES or kind.startswith("fuse.")


def read_filesystem_type(path: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> Optional[str]:
    """Type of the file system under `path` (`ext4`, `nfs4`), which need not exist; None when that cannot be told."""
    try:
        table = mountinfo.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return find_filesystem_type(os.path.realpath(path), table)


def find_filesystem_type(path: str, mountinfo: str) -> Optional[str]:
    """Type of the last mount whose mount point holds the absolute `path`; the longest mount point wins. Pure.

    mountinfo: the text of /proc/self/mountinfo, `36 35 98:0 / /home rw,noatime master:1 - nfs4 server:/home rw`.
    """
    best: tuple[int, Optional[str]] = (-1, None)
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = _text(fields[4]).rstrip("/")
        # >=: of two mounts on one point the later one covers the earlier one
        if (path == point or path.startswith(point + "/")) and len(point) >= best[0]:
            best = (len(point), right.split(" ")[0])
    return best[1]


def unescape_mount(field: bytes) -> bytes:
    r"""A field of a mount table as it is meant: the kernel writes a blank as `\040`, a line feed as `\012`. Pure."""
    return _OCTAL.sub(lambda match: bytes([int(match.group(1), 8)]), field)


def _text(field: str) -> str:
    return os.fsdecode(unescape_mount(os.fsencode(field)))


def cure_of(error: OSError, otherwise: str) -> str:
    """What helps against a write that failed, after a semicolon; otherwise: where it is a matter of rights. Pure."""
    return "make room there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else otherwise


def lacks_room(folder: Path, error: BaseException) -> bool:
    """Whether something failed for want of room: it says so itself, or the file system has no block or inode left."""
    cause: Optional[BaseException] = error
    while cause is not None:
        if (isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)) or "disk is full" in str(cause):
            return True
        cause = cause.__cause__ or cause.__context__
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    # A file system that makes inodes as it goes counts none at all
    return found.f_bavail * found.f_frsize < _LEAST_BYTES or (found.f_files > 0 and found.f_favail == 0)
