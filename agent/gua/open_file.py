"""Opening what lies where a file of ours should, whatever it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


def open_at_once(path: Path, more_flags: int = 0) -> IO[bytes]:
    """Open for reading without waiting: a pipe would wait for its writer. Raises OSError, with nothing left open.

    By an opener, because a handle given to `open` stays open when it is a folder's, and a daemon looks again and again.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | more_flags
    return open(path, "rb", opener=lambda name, _: os.open(name, flags))
