"""Where a daemon's log goes: stderr for the foreground, a file that cannot grow without end for the background."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from gua.daemon.log_budget import LogBudget
from gua.errors import GuaError
from gua.text import shown

_LARGEST_BYTES = 1 << 20
_KEPT = 2
_TAIL_BYTES = 16_384
_FORMAT = "%(levelname)s %(message)s"


def log_path(database: Path) -> Path:
    """Where it is unless another was named: beside the database, `gua.log` for `gua.db`."""
    return database.with_suffix(".log") if database.suffix != ".log" else database.with_name(database.name + ".log")


def log_to_stderr(environ: Mapping[str, str] = os.environ) -> None:
    """Log to stderr; without times where that is the journal, which has its own."""
    stamp = "" if _is_journal(2, environ.get("JOURNAL_STREAM", "")) else "%(asctime)s "
    _log_by(logging.StreamHandler(sys.stderr), stamp)


def log_to_file(path: Path) -> None:
    """Log to that file, with two older ones beside it, of a MiB each. Raises GuaError when it cannot be written."""
    from logging.handlers import RotatingFileHandler

    try:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        # The log names people: not for everybody
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o640))
        handler = RotatingFileHandler(path, maxBytes=_LARGEST_BYTES, backupCount=_KEPT, encoding="utf-8")
    except OSError as exc:
        raise GuaError(f"{shown(str(path), 200)}: no log can be written there: {exc.strerror}; name another") from exc
    logging.raiseExceptions = False  # a full disk costs log lines, and nothing is to be said of each
    _log_by(handler, "%(asctime)s ")


def size_of(path: Path) -> int:
    """Bytes in the log now; 0 where there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def tail(path: Path, since: int, lines: int = 10) -> list[str]:
    """The last lines that were written after the first `since` bytes; none where it cannot be read."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(since if since <= size else 0, size - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    return [shown(line, 300) for line in text.splitlines()[-lines:]]


def _log_by(handler: logging.Handler, stamp: str) -> None:
    handler.addFilter(LogBudget())
    handler.setFormatter(logging.Formatter(stamp + _FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _is_journal(fd: int, stream: str) -> bool:
    """Whether what is open there is the journal's stream `device:inode`; an heir of it may log elsewhere."""
    device, _, inode = stream.partition(":")
    try:
        found = os.fstat(fd)
    except OSError:
        return False
    return stream != "" and (device, inode) == (str(found.st_dev), str(found.st_ino))
