"""The database file itself: where it may live, its rights, and what to do with a file that is no database."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

from gua.units import to_iso

FILE_MODE = 0o640
FOLDER_MODE = 0o750

# statfs f_type of file systems whose shared memory does not work between machines (linux/magic.h).
_NETWORK_MAGIC = frozenset(
    {
        0x6969,  # NFS
        0xFF534D42,  # CIFS
        0xFE534D42,  # SMB2
        0x517B,  # SMB
        0x65735546,  # FUSE: sshfs, glusterfs; local ones only lose a little speed without WAL
        0x0BD00BD0,  # Lustre
        0x47504653,  # GPFS
        0x19830326,  # BeeGFS
        0x00C36400,  # Ceph
        0x5346414F,  # AFS
        0x01021997,  # 9p
    }
)


def is_network_file_system(folder: Path) -> bool:
    """Whether `folder` is on a network file system, where SQLite's WAL is unsafe. False when it cannot be told."""
    libc = ctypes.CDLL(None, use_errno=True)
    # struct statfs is 120 bytes on 64-bit Linux and begins with f_type, one word wide.
    buffer = ctypes.create_string_buffer(256)
    if libc.statfs(os.fsencode(folder), buffer) != 0:
        return False
    return ctypes.c_ulong.from_buffer(buffer).value & 0xFFFFFFFF in _NETWORK_MAGIC


def prepare_file(path: Path) -> None:
    """Make the folder and an empty file with our rights; one that exists is left as it is."""
    if not path.parent.is_dir():
        path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
    except FileExistsError:
        return
    os.close(handle)


def move_aside(path: Path, now_ms: int) -> Path:
    """Rename a file that is no usable database, its -wal and -shm with it, and say where it went."""
    stamp = to_iso(now_ms - now_ms % 1000).replace(":", "").replace("-", "")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{suffix}", f"{aside}{suffix}")
    return aside
