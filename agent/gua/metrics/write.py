"""The file for node_exporter's textfile collector: whole or not at all, whoever else may write into its directory."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path

from gua.errors import GuaError
from gua.text import shown

FILE_NAME = "gua.prom"
# The collector reads *.prom only: what is half written must be called otherwise.
_BESIDE = f".{FILE_NAME}."
# Writing takes less; what is older was left by somebody who was killed.
_LEFT_BEHIND_S = 3600.0


def write_textfile(directory: Path, text: str) -> None:
    """Put the file there in one step, for node_exporter to read. Raises GuaError."""
    path = directory / FILE_NAME
    try:
        # A name that nobody can guess: where others may write, a link could lie in wait for it
        handle, name = tempfile.mkstemp(prefix=_BESIDE, dir=directory)
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(name, 0o644)  # the collector is another user
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise
    except OSError as exc:
        raise GuaError(
            f"{shown(str(path), 200)}: cannot be written: {exc.strerror}; name a directory of this user's"
        ) from exc


def remove_textfile(directory: Path) -> None:
    """Take the file away: nothing is known any more. Raises OSError."""
    (directory / FILE_NAME).unlink(missing_ok=True)


def remove_left_behind(directory: Path) -> None:
    """Take away what was half written when somebody was killed. Raises OSError."""
    for path in directory.glob(f"{_BESIDE}*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _LEFT_BEHIND_S:
                path.unlink()
