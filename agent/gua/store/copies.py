"""Copies of a database as it was before its schema was changed, beside it: what an older program can go on from.

The fleet's store uses this too. What is left of a copy that was interrupted has a name that says so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

from gua.units import to_iso

# So many stay after a change, for who skips a release goes back by two.
KEPT = 2
# They hold names of people, which the database itself drops in time; who goes back does so within days.
KEPT_MS = 30 * 86_400_000

_UNFINISHED = "unfinished"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class CopyFailed(Exception):
    """No copy could be made. One line: what, where, what to do."""


@dataclass(frozen=True)
class Copy:
    """schema: the version it has. made_ms: when, Unix, UTC, by its name."""

    path: Path
    schema: int
    made_ms: int


def keep_copy(path: Path, schema: int, now_ms: int) -> Path:
    """Copy the database at `path`, which has this schema, and give the place of the copy. Raises CopyFailed.

    Whoever calls it has the database's write lock: nothing changes meanwhile, and nobody else makes a copy.
    """
    unfinished = Path(f"{path}.schema-{schema}.{_UNFINISHED}")
    try:
        with contextlib.suppress(FileNotFoundError):
            unfinished.unlink()  # of one that was interrupted
        _refuse_without_room(path)
        try:
            _write(path, unfinished)
            copy = _free_name(path, schema, now_ms)
            os.rename(unfinished, copy)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
        _sync_folder(path.parent)
    except (OSError, sqlite3.Error) as exc:
        raise CopyFailed(_told(path, schema, exc)) from exc
    _remove(find_copies(path)[: -KEPT - 1])  # of programs that were killed in their change, again and again
    return copy


@contextlib.contextmanager
def copy_of_a_change(path: Optional[Path]) -> Iterator[list[Path]]:
    """Around the transaction of a change: the copy that was made for it is put into the list.

    Where the change fails the copy goes again, for nothing was changed: who tries again every few seconds would fill
    the disk with copies, and lose those of the times before. Those that are too many go when it is done.
    path: of the database; None where it is no file, and no copy is made.
    """
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        _unlink(made)
        raise
    if path is not None and made:
        _remove(find_copies(path)[:-KEPT])


def find_copies(path: Path) -> list[Copy]:
    """The copies beside the database at `path`, oldest first: ours by name and by owner (see _beside), and whole."""
    found = [
        Copy(path.with_name(match[0]), int(match[1]), made_ms)
        for match in _beside(path, r"schema-([0-9]{1,9})-(\d{8}T\d{6})Z(-\d+)?")
        if (made_ms := _stamp_ms(match[2])) is not None
    ]
    return sorted(found, key=lambda copy: (copy.made_ms, copy.path.name))


def drop_unfinished(path: Path) -> None:
    """Remove what is left of copies that were interrupted, for they hold names, too.

    Whoever calls it has the database's write lock: nobody is making one.
    """
    _unlink(path.with_name(match[0]) for match in _beside(path, rf"schema-[0-9]{{1,9}}\.{_UNFINISHED}"))


def drop_before(copies: Iterable[Copy], cut_ms: int) -> list[Copy]:
    """Remove those that were made before, and give the others."""
    copies = list(copies)
    _remove(copy for copy in copies if copy.made_ms < cut_ms)
    return [copy for copy in copies if copy.made_ms >= cut_ms]


def way_back(path: Path, known: int) -> str:
    """What to add where the database is too new: the newest copy that a program of schema `known` can go on from."""
    fitting = [copy for copy in find_copies(path) if copy.schema <= known]
    return f"; or go on from {fitting[-1].path.name}, the copy of before, as the docs say" if fitting else ""


def _write(path: Path, target: Path) -> None:
    """One consistent view of the database, in a file that only those may read who may read the database."""
    handle = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.closing(_connect(path, "ro")) as source, contextlib.closing(_connect(target, "rw")) as copy:
            copy.execute("PRAGMA journal_mode = OFF")  # half a copy is thrown away, not mended
            copy.execute("PRAGMA synchronous = OFF")
            source.backup(copy)
        _take_rights(handle, path.stat())  # now: a reader who locked it before would be waited for, for ever
        os.fsync(handle)
    finally:
        os.close(handle)


def _refuse_without_room(path: Path) -> None:
    """Before any of it is taken: who waits for room would fill the disk anew each time, and others need it, too."""
    found = os.statvfs(path.parent)
    if found.f_blocks > 0 and found.f_bavail * found.f_frsize < path.stat().st_size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection of its own, for SQLite copies nothing from one that has begun to write."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)


def _take_rights(handle: int, status: os.stat_result) -> None:
    """The database's owner, group and mode; a group that cannot be given gets no rights.

    What is right already is not asked for: the agent's unit allows no change of owner, not even to the same one.
    """
    mode, own = stat.S_IMODE(status.st_mode), os.fstat(handle)
    if own.st_uid != status.st_uid:
        with contextlib.suppress(OSError):  # only root may
            os.fchown(handle, status.st_uid, -1)
    if own.st_gid != status.st_gid:
        try:
            os.fchown(handle, -1, status.st_gid)
        except OSError:
            mode &= 0o707
    os.fchmod(handle, mode)


def _free_name(path: Path, schema: int, now_ms: int) -> Path:
    stamp = to_iso(now_ms - now_ms % 1000).replace(":", "").replace("-", "")
    copy = path.with_name(f"{path.name}.schema-{schema}-{stamp}")
    number = 1
    while os.path.lexists(copy):
        number += 1
        copy = path.with_name(f"{path.name}.schema-{schema}-{stamp}-{number}")
    return copy


def _stamp_ms(stamp: str) -> Optional[int]:
    try:
        moment = datetime.strptime(stamp, "%Y%m%dT%H%M%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return int(moment.timestamp()) * 1000


def _beside(path: Path, ending: str) -> list[re.Match[str]]:
    """The names of files beside the database that go on like that, and are of its owner or of this user.

    Others' are not believed; where several write to one database, who changed it finds what could not be given away.
    """
    pattern = re.compile(rf"{re.escape(path.name)}\.{ending}")
    try:
        owners, names = (path.stat().st_uid, os.geteuid()), os.listdir(path.parent)
    except OSError:  # nothing is there, or this user may not look
        return []
    matches = filter(None, map(pattern.fullmatch, names))
    return [match for match in matches if _is_file_of(owners, path.with_name(match[0]))]


def _is_file_of(owners: Collection[int], path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid in owners


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some file systems cannot, and SQLite does not insist on it either
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _remove(copies: Iterable[Copy]) -> None:
    _unlink(copy.path for copy in copies)


def _unlink(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def _told(path: Path, schema: int, exc: BaseException) -> str:
    why = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
    if isinstance(exc, OSError) and exc.filename:  # what stands in the way
        why = f"{why}: {exc.filename}"
    cure = "let this user write there" if isinstance(exc, PermissionError) or "unable to open" in why else "see to it"
    if "disk is full" in why or (isinstance(exc, OSError) and exc.errno in _NO_ROOM):
        cure = f"make {path.stat().st_size // 1_000_000 + 1} MB of room there"
    return (
        f"{path} stays as it is, at schema {schema}: no copy of it could be put into {path.parent} before the change"
        f" ({why}): {cure}, and try again"
    )
