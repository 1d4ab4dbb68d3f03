"""Whether a daemon has a database, and which process it is. Changes nothing."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from gua.daemon.lock import holder_of, is_locked
from gua.daemon.record import DaemonRecord


class Presence(enum.Enum):
    """What the lock says."""

    NONE = "none"  # nobody has it
    HERE = "here"  # the process of the record has it
    ELSEWHERE = "elsewhere"  # a daemon of another host has it, through a shared file system
    UNNAMED = "unnamed"  # somebody has it, and it is not known who
    HIDDEN = "hidden"  # this user may not see the lock


@dataclass(frozen=True)
class Found:
    """record: of the daemon; None unless HERE or ELSEWHERE."""

    presence: Presence
    record: Optional[DaemonRecord] = None


def find_daemon(database: Path) -> Found:
    """The daemon that has the database now.

    The lock decides, which the kernel drops with its holder. Its file names the process, which counts only while that
    very process lives: pid and start time, of this boot.
    """
    locked = is_locked(database)
    if not locked:
        return Found(Presence.HIDDEN if locked is None else Presence.NONE)
    record = holder_of(database)
    if record is None:
        return Found(Presence.UNNAMED)
    if not record.is_of_this_host():
        return Found(Presence.ELSEWHERE, record)
    return Found(Presence.HERE, record) if record.is_alive() else Found(Presence.UNNAMED)
