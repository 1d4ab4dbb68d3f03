"""Which call of NVML the sampling child is in, in memory that its parent can read while the child cannot speak.

And how long it has been with that card: one that takes two seconds for every answer holds up the others, too.

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
# Whether a call is under way, since when, and since when with that card; its name and its card follow as text.
_HEAD = struct.Struct("=?dd")
NO_CARD = ""


@dataclass(frozen=True)
class Position:
    """A call under way. place: a card's or MIG instance's UUID, `index N of COUNT` before it is known, or NO_CARD.

    since_s: when it began, on the monotonic clock that all processes of a host share. place_since_s: when the sample
    came to this place; later by the time that it was elsewhere meanwhile, as from a MIG instance to its card and back.
    """

    place: str
    call: str
    since_s: float = 0.0
    place_since_s: float = 0.0


class Progress:
    """One page shared by parent and child: `create` here, hand `fd` down, `Progress(fd)` there.

    Raises OSError where the kernel gives no memory.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._memory = mmap.mmap(fd, _SIZE)
        self._place, self._entered_s = NO_CARD, 0.0
        self._spent_s: dict[str, float] = {}

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
        now_s = time.monotonic()
        self._spent_s[self._place] = now_s - self._entered_s
        self._place, self._entered_s = place, now_s - self._spent_s.get(place, 0.0)

    def known_as(self, place: str) -> None:
        """The card that calls are about has told its UUID."""
        self._place = place

    def call(self, name: str) -> None:
        """The call that begins now."""
        record = _HEAD.pack(True, time.monotonic(), self._entered_s) + f"{name}\t{self._place}\0".encode()
        self._memory[: min(len(record), _SIZE)] = record[:_SIZE]

    def rest(self) -> None:
        """No call is under way: a sample has come to its end."""
        self._place, self._entered_s = NO_CARD, 0.0
        self._spent_s.clear()
        self._memory[0] = 0

    def read(self) -> Optional[Position]:
        """What the child is in; None when it is in no call."""
        record = self._memory[:_SIZE]
        in_call, since_s, place_since_s = _HEAD.unpack_from(record)
        text = record[_HEAD.size :].partition(b"\0")[0].decode(errors="replace")
        name, _, place = text.partition("\t")
        return Position(place, name, since_s, place_since_s) if in_call else None
