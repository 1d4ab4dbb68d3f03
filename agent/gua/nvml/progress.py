"""Which call of NVML the sampling child is in, in memory that its parent can read while the child cannot speak.

A child held in the kernel, or stopped, answers nothing; what it last wrote here still stands. Writing costs a
microsecond a call, where a message would cost a wake-up of the parent.
"""

from __future__ import annotations

import mmap
import os
import time
from dataclasses import dataclass
from typing import Optional

_SIZE = 512
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
        record = f"{time.monotonic()}\t{name}\t{self._place}\0".encode()[:_SIZE]
        self._memory[: len(record)] = record

    def rest(self) -> None:
        """No call is under way."""
        self._place = NO_CARD
        self._memory[0] = 0

    def read(self) -> Optional[Position]:
        """What the child is in; None when it is in no call, or the record is being written."""
        record = self._memory[:_SIZE].partition(b"\0")[0].decode(errors="replace")
        since, _, rest = record.partition("\t")
        name, _, place = rest.partition("\t")
        try:
            return Position(place, name, float(since))
        except ValueError:
            return None
