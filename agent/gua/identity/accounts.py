"""Which uids are people, and who owns a mapped one: /etc/login.defs and /etc/subuid."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from gua.text import decode_bytes

_UID_MIN = 1000
_NOBODY = 65534
# systemd hands these to services with DynamicUser= (https://systemd.io/UIDS-GIDS/).
_DYNAMIC = range(61184, 65520)
_UID_LIMIT = 4294967295


@dataclass(frozen=True)
class SubordinateRange:
    """A line of /etc/subuid: `owner` (a name or a uid) may run containers under these uids."""

    owner: str
    uids: range


@dataclass(frozen=True)
class Accounts:
    """This host's account rules."""

    uid_min: int = _UID_MIN
    subordinate: tuple[SubordinateRange, ...] = ()
    _owners: dict[int, Optional[str]] = field(default_factory=dict, compare=False, repr=False)

    def is_ordinary(self, uid: int) -> bool:
        """Whether a uid can belong to a person: no root, no system account, nobody or service."""
        return self.uid_min <= uid < _UID_LIMIT and uid != _NOBODY and uid not in _DYNAMIC

    def subordinate_owner(self, uid: int) -> Optional[str]:
        """Whose containers run under this uid; None when it lies in no range."""
        if uid not in self._owners:  # a large directory has a range for each of its thousands of people
            self._owners[uid] = next((entry.owner for entry in self.subordinate if uid in entry.uids), None)
        return self._owners[uid]


def read_accounts(etc: Path = Path("/etc")) -> Accounts:
    """The rules of the host; a file that is missing or unreadable leaves the usual ones."""
    return Accounts(_parse_uid_min(_read(etc / "login.defs")), _parse_subuid(_read(etc / "subuid")))


class AccountFiles:
    """The host's rules over time, read anew only when one of their files changed."""

    def __init__(self, etc: Path = Path("/etc")) -> None:
        self._etc = etc
        self._files = (etc / "login.defs", etc / "subuid")
        self._stamp: Optional[tuple[object, ...]] = None
        self._accounts = Accounts()

    def read(self) -> Accounts:
        """The rules as they are now."""
        stamp = tuple(map(_stamp, self._files))
        if stamp != self._stamp:
            self._stamp, self._accounts = stamp, read_accounts(self._etc)
        return self._accounts


def _stamp(path: Path) -> Optional[tuple[int, int, int]]:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _parse_uid_min(text: str) -> int:
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "UID_MIN" and words[1].isdigit():
            return int(words[1])
    return _UID_MIN


def _parse_subuid(text: str) -> tuple[SubordinateRange, ...]:
    entries = []
    for line in text.splitlines():
        owner, _, numbers = line.strip().partition(":")
        first, _, count = numbers.partition(":")
        if owner and first.isdigit() and count.isdigit():
            entries.append(SubordinateRange(owner, range(int(first), int(first) + int(count))))
    return tuple(entries)


def _read(path: Path) -> str:
    try:
        return decode_bytes(path.read_bytes())
    except OSError:
        return ""
