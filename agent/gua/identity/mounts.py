"""Whose directories a container was given: a hint at the person behind it, never a charge. Pure.

    container's /proc/PID/mountinfo   701 690 0:44 /alice/project /workspace rw - nfs4 nas:/export/home rw
    host's                             97  29 0:44 / /home rw,relatime - nfs4 nas:/export/home rw
                                       -> /home/alice

Only what lies on the host counts. The mount point is chosen inside the container, and so says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from gua.filesystem import unescape_mount
from gua.text import decode_bytes, shown

# A directory named like this, not deep in the tree, holds one directory for each person.
_PERSONAL = re.compile(r"((?:/[^/]+){0,3}?/(?:home|homes|users)/[^/]+)(?=/|$)")
# Below these lie volumes and other things of the engines and of the system (/var/home is a home, though).
_NOT_PEOPLES = ("/var/lib/", "/var/cache/", "/var/run/", "/run/", "/usr/", "/etc/", "/proc/", "/sys/", "/dev/")
# More than this is a container that looks after everybody's directories: then the number says more than names.
_MOST_NAMED = 3
_DELETED = "//deleted"  # the kernel's mark at a bind mount whose directory is gone


@dataclass(frozen=True)
class Mount:
    """One mount. device: `major:minor`. root: what part of that file system it shows. point: where."""

    device: str
    root: str
    point: str


def mount_hint(container: bytes, host: bytes) -> Optional[str]:
    """`/home/alice` or `/home/alice, /data/users/bob`, safe to be shown; None when no person's directory is mounted.

    container, host: the mountinfo tables of the container's process and of the host. At most three are named.
    """
    host_mounts = parse_mounts(host)
    paths = (_host_path(mount, host_mounts) for mount in parse_mounts(container))
    people = sorted({found for found in map(_personal_directory, paths) if found is not None})
    if not people:
        return None
    named = ", ".join(shown(path) for path in people[:_MOST_NAMED])
    return named if len(people) <= _MOST_NAMED else f"{named} and {len(people) - _MOST_NAMED} more"


def parse_mounts(table: bytes) -> list[Mount]:
    """The mounts of a mountinfo table; a line that is none is left out."""
    mounts = []
    for line in table.splitlines():
        fields = line.split(b" ")
        if len(fields) >= 5:
            device, root, point = (decode_bytes(unescape_mount(field)) for field in fields[2:5])
            mounts.append(Mount(device, root, point))
    return mounts


def _host_path(mount: Mount, host: Sequence[Mount]) -> str:
    """Where the host has what is mounted; what the file system itself calls it where the host does not show it."""
    root = mount.root[: -len(_DELETED)] if mount.root.endswith(_DELETED) else mount.root
    showing = [entry for entry in host if entry.device == mount.device and _lies_below(root, entry.root)]
    # Of several the one that shows most: the others are bind mounts of a part, often the container's own
    widest = min(showing, key=lambda entry: len(entry.root), default=Mount("", "/", "/"))
    return f"{widest.point.rstrip('/')}/{root[len(widest.root) :].lstrip('/')}"


def _lies_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def _personal_directory(path: str) -> Optional[str]:
    found = None if path.startswith(_NOT_PEOPLES) else _PERSONAL.match(path)
    return None if found is None else found.group(1)
