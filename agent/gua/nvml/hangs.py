"""Cards whose calls do not return: left out of the next samples, so that the others are read, and tried again. Pure.

A card that hangs once may hang at every tick, and each time costs the whole host that tick. So it is left out for a
while that doubles each time it hangs again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from gua.nvml.leave_out import LeaveOut
from gua.nvml.progress import Position

FIRST_RETRY_S = 300.0
LONGEST_RETRY_S = 7200.0


@dataclass(frozen=True)
class _Hang:
    call: str
    wait_s: float
    until_s: float


def hanging(position: Optional[Position], now_s: float, deadline_s: float) -> Optional[Position]:
    """The call to blame for a sample that missed its deadline; None when no card hangs.

    A call that began late in the sample only came last: then the host is slow as a whole.
    """
    if position is None or not position.place or now_s - position.since_s < deadline_s / 2:
        return None
    return position


class HangingCards:
    """What hangs, by place (see `gua.nvml.progress.Position`). All times are of one monotonic clock."""

    def __init__(self, first_retry_s: float = FIRST_RETRY_S) -> None:
        self._first_retry_s = first_retry_s
        self._hangs: dict[str, _Hang] = {}

    def blame(self, place: str, call: str, now_s: float) -> None:
        """A sample came to nothing because `call` on that card did not return."""
        before = self._hangs.get(place)
        wait_s = self._first_retry_s if before is None else min(2 * before.wait_s, LONGEST_RETRY_S)
        self._hangs[place] = _Hang(call, wait_s, now_s + wait_s)

    def leave_out(self, now_s: float) -> LeaveOut:
        """What the next sample shall not touch."""
        return {place: hang.call for place, hang in self._hangs.items() if now_s < hang.until_s}

    def answered(self, left_out: LeaveOut) -> None:
        """A sample came that left out only these: whatever else hung before answers again."""
        self._hangs = {place: hang for place, hang in self._hangs.items() if place in left_out}
