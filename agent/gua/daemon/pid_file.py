"""The daemon's pid file: for people and for monitoring. What is running is told by the lock, never by this file."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from pathlib import Path
from typing import Optional

from gua.daemon.lock import try_hold
from gua.daemon.record import DaemonRecord, parse_record, read_start_ticks
from gua.errors import GuaError
from gua.text import shown

logger = logging.getLogger(__name__)

_LARGEST_BYTES = 4096
_MODE = 0o644


def pid_path(database: Path) -> Path:
    """Where it is unless another was named: beside the database, `gua.pid` for `gua.db`."""
    return database.with_suffix(".pid") if database.suffix != ".pid" else database.with_name(database.name + ".pid")


def write_pid_file(path: Path, record: DaemonRecord) -> None:
    """Put it there in one step. Where it cannot be, or another thing is there, a line says so: nothing needs it."""
    try:
        if os.path.lexists(path) and not _is_replaceable(path, record):
            logger.warning(
                "%s is no pid file of ours and stays as it is: no pid file is written", shown(str(path), 200)
            )
            return
        beside = path.with_name(f".{path.name}.{record.pid}")
        try:
            beside.write_text(record.to_text())
            beside.chmod(_MODE)
            os.replace(beside, path)
        finally:
            with contextlib.suppress(OSError):
                beside.unlink()
    except OSError as exc:
        logger.warning("no pid file at %s: %s", shown(str(path), 200), exc.strerror)


def remove_pid_file(path: Path, record: DaemonRecord) -> None:
    """Take it away, if it is still that daemon's."""
    with contextlib.suppress(OSError):
        if parse_record(_read(path)) == record:
            path.unlink()


def look_after(path: Path, database: Path) -> Optional[str]:
    """What there is to say of the file while no daemon has the database; None for nothing.

    A stale one is removed. One that is no pid file, or of another host or database, is left alone.
    """
    name = shown(str(path), 200)
    try:
        raw = _read(path)
    except FileNotFoundError:
        return None
    except OSError as exc:
        return f"pid file {name} cannot be read: {exc.strerror}"
    record = parse_record(raw)
    if record is None and raw.strip(b"\0 \n"):
        return f"{name} is no pid file; it stays as it is"
    if record is not None and not record.is_of_this_host():
        return f"pid file {name} belongs to host {shown(record.host)}; it stays as it is"
    if record is not None and record.is_alive():
        return f"pid file {name} belongs to the gua daemon (pid {record.pid}) of {shown(record.database, 200)}"
    why = f"pid {record.pid} belongs to another process" if record and _is_taken(record) else "its daemon is gone"
    if record is None:
        why = "it is empty"
    if record is not None and is_predecessor(record):
        return f"gpu-usage-audit still samples here (pid {record.pid}): end it with `kill {record.pid}`"
    cleared = _clear(path, database, raw)
    return f"{why}; cleared stale pid file {name}" if cleared else f"{why}; stale pid file {name} cannot be removed"


def refuse_predecessor(path: Path) -> None:
    """Raises GuaError while the older program, which knows no lock, samples into the same place."""
    try:
        record = parse_record(_read(path))
    except OSError:
        return
    if record is not None and is_predecessor(record):
        raise GuaError(
            f"gpu-usage-audit still samples here (pid {record.pid}): end it with `kill {record.pid}`, then start again"
        )


def is_predecessor(record: DaemonRecord) -> bool:
    """Whether it is the background daemon of gpu-usage-audit: its file has the pid only, so its command line tells."""
    if record.start_ticks is not None or not _is_taken(record):
        return False
    try:
        words = Path(f"/proc/{record.pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[1:4] == [b"-m", b"gpu_usage_audit", b"daemon"]


def _is_taken(record: DaemonRecord) -> bool:
    return read_start_ticks(record.pid) is not None


def _clear(path: Path, database: Path, raw: bytes) -> bool:
    """Remove the file, unless a daemon is starting or the file is no longer the one that was looked at."""
    with try_hold(database) as held:
        if not held:
            return False
        try:
            if _read(path) == raw:
                path.unlink()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


def _is_replaceable(path: Path, ours: DaemonRecord) -> bool:
    """Whether it is empty, or of a daemon that is surely gone: we have the lock of its database, or it was here."""
    raw = _read(path)
    record = parse_record(raw)
    if record is None:
        return not raw.strip(b"\0 \n")
    return record.database == ours.database or (record.is_of_this_host() and not record.is_alive())


def _read(path: Path) -> bytes:
    """The file's begin. Raises OSError, also for what is no plain file."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "not a plain file")
        return os.read(fd, _LARGEST_BYTES)
    finally:
        os.close(fd)
