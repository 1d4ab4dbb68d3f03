"""Which cards are left out of a sample, because driver calls about them hung, or took too long. Pure.

A hung call holds the child, and with it every other card. So the card that it was about is left out of what the next
child reads, and is tried again: at the next tick, then after half a minute, then ever more seldom.

A card goes by its place: see `gua.nvml.progress.Position`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gua.nvml.leave_out import LeaveOut

# After the first hang the next sample tries again: a driver that was only slow costs one tick of that card.
_FIRST_WAIT_S = 30.0
_LONGEST_WAIT_S = 600.0
# A call that takes this long on a busy machine need not hang yet.
_SHORTEST_STALL_S = 1.0


@dataclass(frozen=True)
class _Hung:
    call: str
    hangs: int
    again_s: float


@dataclass
class Isolation:
    """The cards that hung since they last answered. Times are monotonic seconds."""

    _hung: dict[str, _Hung] = field(default_factory=dict)

    def left_out(self, now_s: float) -> LeaveOut:
        """The cards not to be asked now: all that hung, but one whose time has come.

        Never two are tried in one sample: the second would take the time of the healthy ones.
        """
        due = [place for place, hung in self._hung.items() if hung.again_s <= now_s]
        tried = min(due, key=lambda place: self._hung[place].again_s, default=None)
        return {place: hung.call for place, hung in self._hung.items() if place != tried}

    def hung(self, place: str, call: str, now_s: float) -> None:
        """A call about this card did not return in time."""
        hangs = self._hung[place].hangs + 1 if place in self._hung else 1
        self._hung[place] = _Hung(call, hangs, now_s + wait_s(hangs))

    def answered(self, left_out: LeaveOut) -> None:
        """A sample came to its end without these cards: every other one is well."""
        self._hung = {place: hung for place, hung in self._hung.items() if place in left_out}

    def forget(self) -> None:
        """The driver begins anew, or no card is left that could be protected: what was said no longer counts."""
        self._hung = {}


def wait_s(hangs: int) -> float:
    """How long a card is left alone after so many hangs in a row: 0, 30 s, 1 min, ... 10 min."""
    return 0.0 if hangs <= 1 else float(min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** min(hangs - 2, 10)))


def successor_stall_s(left_s: float) -> float:
    """How long a child that begins with so much left of the tick may be with one card: a third of that, or a second.

    Every child takes its time to start, too, and where nothing would be left for a next one, it has all there is: of
    ten seconds (5, 1.7, 1.1 and 1) four cards are left out and a fifth child reads the rest, of less than four seconds
    one.
    """
    return max(left_s / 3, _SHORTEST_STALL_S) if left_s >= 2 * _SHORTEST_STALL_S else left_s
