"""A request that this host's driver be left alone: a small file beside the database, so that it outlives any daemon."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Optional

from gua.errors import GuaError, Paused
from gua.filesystem import cure_of
from gua.text import shown
from gua.units import to_iso

# Longer than any maintenance; and a time that far off can still be written down.
LONGEST_MS = 366 * 86_400_000
# What has four figures for its year; `to_iso` writes no later one.
_LATEST_MS = 253_402_300_799_999 - LONGEST_MS
_LARGEST_BYTES = 4096
# The readers' group may know that nobody looks; only the owner may ask for it.
_MODE = 0o640


@dataclass(frozen=True)
class PauseRequest:
    """asked_ms, until_ms: Unix UTC milliseconds; until_ms None: until somebody resumes. by: who asked, for people."""

    asked_ms: int
    until_ms: Optional[int]
    by: str

    def left_ms(self, now_ms: int) -> Optional[int]:
        """How long it still lasts, 0 when it is over; None: no end. A clock set back makes no pause longer."""
        if self.until_ms is None:
            return None
        return max(0, min(self.until_ms - now_ms, self.until_ms - self.asked_ms))

    def __str__(self) -> str:
        end = "`gua resume`" if self.until_ms is None else to_iso(self.until_ms // 1000 * 1000)
        return f"paused until {end}, asked for by {shown(self.by)}"


class PauseUnreadable(GuaError):
    """What lies in the request's place is no request. Nobody obeys it."""


def pause_path(database: Path) -> Path:
    """The request's file beside a database."""
    return database.with_name(database.name + ".pause")


def save_pause(database: Path, request: PauseRequest) -> None:
    """Ask, in one step, in place of an older request. Raises GuaError when this user may not."""
    path = pause_path(database)
    if not path.parent.exists():
        raise GuaError(f"there is no directory {shown(str(path.parent), 200)}: no daemon ever sampled into it")
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
        try:
            with os.fdopen(fd, "wb") as file:
                os.fchmod(fd, _MODE)
                file.write(json.dumps(asdict(request)).encode())
                file.flush()
                os.fsync(fd)
            os.replace(scratch, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(scratch)
            raise
    except OSError as exc:
        raise _not_allowed(path, exc) from exc


def remove_pause(database: Path) -> bool:
    """Take the request back; whether there was one. Raises GuaError when this user may not."""
    path = pause_path(database)
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise _not_allowed(path, exc) from exc
    return True


def load_pause(database: Path) -> Optional[PauseRequest]:
    """The request that lies there, also one whose time is over; None without. Raises PauseUnreadable."""
    path = pause_path(database)
    try:
        # A pipe or a link to a device in its place must not hold anybody up
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise _unreadable(path, exc.strerror) from exc
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise _unreadable(path, "not a plain file")
        return parse_pause(os.read(fd, _LARGEST_BYTES))
    except OSError as exc:
        raise _unreadable(path, exc.strerror) from exc
    except ValueError as exc:
        raise _unreadable(path, str(exc)) from exc
    finally:
        os.close(fd)


def parse_pause(raw: bytes) -> PauseRequest:
    """The request in a file's content. Raises ValueError. Pure."""
    try:
        fields: Any = json.loads(raw)
        request = PauseRequest(fields["asked_ms"], fields["until_ms"], fields["by"])
    except (ValueError, TypeError, LookupError, RecursionError) as exc:
        raise ValueError("no pause request is in it") from exc
    asked_ms, until_ms = request.asked_ms, request.until_ms
    if not _is_time(asked_ms) or not isinstance(request.by, str):
        raise ValueError("no pause request is in it")
    if until_ms is not None and not (type(until_ms) is int and asked_ms <= until_ms <= asked_ms + LONGEST_MS):
        raise ValueError("its end makes no sense")
    return request


def refuse_when_paused(database: Path, now_ms: int) -> None:
    """Raises Paused while a request stands, and PauseUnreadable."""
    request = load_pause(database)
    if request is not None and request.left_ms(now_ms) != 0:
        raise Paused(f"{request}: the driver is left alone; `gua resume` ends that")


def _is_time(value: object) -> bool:
    return type(value) is int and 0 <= value <= _LATEST_MS


def _unreadable(path: Path, why: Optional[str]) -> PauseUnreadable:
    return PauseUnreadable(f"{shown(str(path), 200)} is ignored: {why}; remove it with `gua resume`")


def _not_allowed(path: Path, error: OSError) -> GuaError:
    cure = cure_of(error, "run as the database's owner, or as root")
    return GuaError(f"cannot write {shown(str(path), 200)}: {error.strerror}; {cure}")
