"""Whose directories a container was given: a hint at the person behind it, never a charge. Pure.

    container's /proc/PID/mountinfo   701 690 0:44 /alice/project /workspace rw - nfs4 nas:/export/home rw
    host's                             97  29 0:44 / /home rw,relatime - nfs4 nas:/export/home rw
                                       -> /home/alice

Only what lies on the host counts. The mount point is chosen inside the container, and so says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Callable, Optional

from gua.filesystem import unescape_mount
from gua.text import decode_bytes, shown

# A directory named like this, not deep in the tree, holds one directory for each person.
_PERSONAL = re.compile(r"((?:/[^/]+){0,3}?/(?:home|homes|users)/[^/]+)(?=/|$)")
# Below these lie volumes and other things of the engines and of the system (/var/home is a home, though).
_NOT_PEOPLES = ("/var/lib/", "/var/cache/", "/var/run/", "/run/", "/usr/", "/etc/", "/proc/", "/sys/", "/dev/")
# Elsewhere, as in `/data/alice` or `/mnt/nas/lab/alice`, only the name of an account tells. A directory service is
# asked for these, so not for many.
_ACCOUNT = re.compile(r"[\w][\w.@+-]{0,63}")
_DEEPEST_NAME = 5
_MOST_ASKED = 16
_DEEPEST = 64
# More than this is a container that looks after everybody's directories: then the number says more than names.
_MOST_NAMED = 3
_DELETED = "//deleted"  # the kernel's mark at a bind mount whose directory is gone


@dataclass(frozen=True)
class Mount:
    """One mount. device: `major:minor`. root: what part of that file system it shows. point: where."""

    device: str
    root: str
    point: str


def mount_hint(container: bytes, host: bytes, is_person: Callable[[str], bool] = lambda _: False) -> Optional[str]:
    """`/home/alice` or `/home/alice, /data/bob`, safe to be shown; None when no person's directory is mounted.

    container, host: the mountinfo tables of the container's process and of the host. is_person: whether an account of
    that name belongs to a person; asked of few names. At most three directories are named.
    """
    shown_at = _host_points(host)
    paths = sorted({_host_path(mount, shown_at) for mount in parse_mounts(container)})
    is_account = _sparingly(is_person)
    people = sorted({found for path in paths if (found := _personal_directory(path, is_account)) is not None})
    if not people:
        return None
    named = ", ".join(shown(path) for path in people[:_MOST_NAMED])
    return named if len(people) <= _MOST_NAMED else f"{named} and {len(people) - _MOST_NAMED} more"


def parse_mounts(table: bytes) -> list[Mount]:
    """The mounts of a mountinfo table; a line that is none is left out."""
    mounts = []
    for line in table.splitlines():
        fields = line.split(b" ", 5)
        if len(fields) >= 5:
            device, root, point = (decode_bytes(unescape_mount(field)) for field in fields[2:5])
            mounts.append(Mount(device, root, point))
    return mounts


@lru_cache(maxsize=1)  # the processes of one job begin together, and their host's table may have thousands of lines
def _host_points(host: bytes) -> Mapping[tuple[str, str], str]:
    """(device, root) -> the first mount point that shows it."""
    points: dict[tuple[str, str], str] = {}
    for mount in parse_mounts(host):
        points.setdefault((mount.device, mount.root), mount.point)
    return points


def _host_path(mount: Mount, shown_at: Mapping[tuple[str, str], str]) -> str:
    """Where the host has what is mounted; what the file system itself calls it where the host does not show it."""
    root = mount.root[: -len(_DELETED)] if mount.root.endswith(_DELETED) else mount.root
    # Of several mounts the one that shows most: the others are bind mounts of a part, often the container's own
    for part in _directories(root):
        point = shown_at.get((mount.device, part))
        if point is not None:
            return f"{point.rstrip('/')}/{root[len(part) :].lstrip('/')}"
    return f"/{root.lstrip('/')}"


def _directories(path: str) -> Iterator[str]:
    """`/`, `/a`, `/a/b` of `/a/b`; of a very deep path the first ones."""
    yield "/"
    names = path.strip("/").split("/", _DEEPEST)[:_DEEPEST]
    yield from accumulate(f"/{name}" for name in names)


def _personal_directory(path: str, is_account: Callable[[str], bool]) -> Optional[str]:
    """The part of a path that is a person's by where it lies, or by the account whose name it bears."""
    if path.startswith(_NOT_PEOPLES):
        return None
    placed = _PERSONAL.match(path)
    if placed is not None:
        return placed.group(1)
    # Not the top: people's directories lie in something
    names = path.split("/")[1:_DEEPEST_NAME]
    depth = next((depth for depth, name in enumerate(names) if depth > 0 and is_account(name)), None)
    return None if depth is None else "/" + "/".join(names[: depth + 1])


def _sparingly(is_person: Callable[[str], bool]) -> Callable[[str], bool]:
    """The same, asked once for each name that can be an account's, and for a few names only."""
    asked: dict[str, bool] = {}

    def is_account(name: str) -> bool:
        if name not in asked and len(asked) < _MOST_ASKED and _ACCOUNT.fullmatch(name):
            asked[name] = is_person(name)
        return asked.get(name, False)

    return is_account
