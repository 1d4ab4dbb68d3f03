"""The database file itself: its rights, and what to do with a file that is no database."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from gua.units import to_iso

FILE_MODE = 0o640
FOLDER_MODE = 0o750


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
