"""Which call of NVML the sampling child is in, in memory that its parent can read while the child cannot speak.

A child held in the kernel, or stopped, answers nothing; what it last wrote here still stands. Writing costs a
microsecond a call, where a message would cost a wake-up of the parent.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from typing import Optional

_SIZE = 512
# Whether a call is under way, and since when; its name and its card follow as text.
_HEAD = struct.Struct("=?d")
NO_CARD = ""


@dataclass(frozen=True)
class Position:
    """A call under way. place: a card's or MIG instance's UUID, `index N` before its UUID is known, or NO_CARD.

    since_s: when it began, on the monotonic clock that all processes of a host share.
    """

    place: str
    call: str
    since_s: float


class Progress:
    """One page shared by parent and child: `create` here, hand `fd` down, `Progress(fd)` there.

    Raises OSError where the kernel gives no memory.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._memory = mmap.mmap(fd, _SIZE)
        self._place = NO_CARD

    @classmethod
    def create(cls) -> Progress:
        fd = os.memfd_create("gua-progress")
        try:
            os.ftruncate(fd, _SIZE)
            return cls(fd)
        except (OSError, ValueError):
            os.close(fd)
            raise

    def close(self) -> None:
        self._memory.close()
        os.close(self.fd)

    def enter(self, place: str) -> None:
        """From here on, calls are about this card, or about none (NO_CARD)."""
        self._place = place

    def call(self, name: str) -> None:
        """The call that begins now."""
        record = _HEAD.pack(True, time.monotonic()) + f"{name}\t{self._place}\0".encode()
        self._memory[: min(len(record), _SIZE)] = record[:_SIZE]

    def rest(self) -> None:
        """No call is under way."""
        self._place = NO_CARD
        self._memory[0] = 0

    def read(self) -> Optional[Position]:
        """What the child is in; None when it is in no call."""
        record = self._memory[:_SIZE]
        in_call, since_s = _HEAD.unpack_from(record)
        text = record[_HEAD.size :].partition(b"\0")[0].decode(errors="replace")
        name, _, place = text.partition("\t")
        return Position(place, name, since_s) if in_call else None
