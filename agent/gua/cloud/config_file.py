"""Making and removing `cloud.json`: whole or not at all, one at a time, and never in the place of something else."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from gua.cloud.config import MODE, CloudConfig, named
from gua.errors import GuaError, UsageError
from gua.open_file import open_at_once

# An enrolment takes less, unless its board is very talkative.
_ROOM_BYTES = 4096
# A file that was cut off by a crash may be all blanks or NULs from some place on.
_BLANK = b" \t\r\n\0"


class ConfigWriter:
    """Writes the enrolment of this host; what can fail fails before the one-time token is used, where possible."""

    def __init__(self, path: Path, handle: int, beside: Path) -> None:
        self._path, self._handle, self._beside = path, handle, beside
        self.saved = False

    def save(self, config: CloudConfig) -> None:
        """Put it in place. Raises OSError."""
        rest = config.to_json().encode("ascii")
        os.ftruncate(self._handle, len(rest))
        while rest:
            rest = rest[os.write(self._handle, rest) :]
        os.fsync(self._handle)
        os.replace(self._beside, self._path)
        self.saved = True
        with contextlib.suppress(OSError):  # it is there; where folders cannot be flushed nothing better can be done
            _flush_folder(self._path.parent)


@contextlib.contextmanager
def open_config_writer(path: Path, owner: Optional[tuple[int, int]] = None) -> Iterator[ConfigWriter]:
    """A writer with a private file already open beside `path`; nothing is left of it when nothing was saved.

    It is always the same one: what a killed one left is used up by the next, and two at a time are not let in.
    owner: uid and gid that the file shall belong to. Raises GuaError where no file can be made, UsageError where
    something is there that is no enrolment.
    """
    refuse_other_file(path)
    beside = _beside(path)
    try:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(0, "a directory")
        handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)
    except OSError as exc:
        raise GuaError(f"{named(path)} cannot be written: {exc.strerror}; name another with --config") from exc
    try:
        _take_for_ourselves(handle, beside, owner)
        writer = ConfigWriter(path, handle, beside)
        try:
            os.fchmod(handle, MODE)
            if owner is not None:
                os.fchown(handle, *owner)
            _reserve_room(handle, path)
            yield writer
        finally:
            if not writer.saved:  # else its name is free already, and may be another one's by now
                with contextlib.suppress(OSError):
                    beside.unlink()
    finally:
        os.close(handle)


def remove_config(path: Path) -> bool:
    """Forget the enrolment, and what a killed `gua enroll` may have left; whether there was one.

    Raises OSError, UsageError where something else is there.
    """
    refuse_other_file(path)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        _beside(path).unlink()
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def refuse_other_file(path: Path) -> None:
    """Raises UsageError where a file of another kind is, such as the settings: --config is easily taken for theirs."""
    try:
        with open_at_once(path) as file:
            begin = file.read(4096).strip(_BLANK)
    except (OSError, ValueError):
        return  # not to be read, or nothing to be read: told by whoever needs it
    if begin and not begin.startswith(b"{"):
        raise UsageError(f"{named(path)} holds something else than an enrolment; name another file with --config")


def _take_for_ourselves(handle: int, beside: Path, owner: Optional[tuple[int, int]]) -> None:
    """Raises GuaError while another `gua enroll` is at it, or when somebody else put a file there to read along."""
    ours = os.fstat(handle)
    uids = (os.geteuid(), *([] if owner is None else owner[:1]))
    if not stat.S_ISREG(ours.st_mode) or ours.st_uid not in uids or ours.st_nlink != 1:
        raise GuaError(f"{named(beside)} is not ours: remove it, and see who can write into that folder")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        there = os.stat(beside, follow_symlinks=False)
    except (BlockingIOError, FileNotFoundError):
        there = None
    except OSError:
        there = ours  # a file system without locks: most likely nobody else is at it
    if there is None or (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
        raise GuaError("another `gua enroll` is at work here right now; see what becomes of that")
    os.ftruncate(handle, 0)


def _reserve_room(handle: int, path: Path) -> None:
    """Raises GuaError on a full disk, before anything is asked of the board."""
    try:
        os.posix_fallocate(handle, 0, _ROOM_BYTES)
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise GuaError(f"{named(path)} cannot be written: {exc.strerror}; make room there first") from exc


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
