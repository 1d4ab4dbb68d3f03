"""Which cards are left out of a sample, because a driver call about them hung. Pure.

A hung call holds the child, and with it every other card. So the card that it was about is left out of what the next
child reads, and is tried again: at the next tick, then after half a minute, then ever more seldom.

A card's name here is its UUID; before it told that, `index N` (`place_of`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

# After the first hang the next sample tries again: a driver that was only slow costs one tick of that card.
_FIRST_WAIT_S = 30.0
_LONGEST_WAIT_S = 600.0


def place_of(index: int) -> str:
    """What a card is called before it told its UUID."""
    return f"index {index}"


@dataclass
class _Hung:
    hangs: int
    again_s: float


@dataclass
class Isolation:
    """The cards that hung since they last answered. Times are monotonic seconds."""

    _hung: dict[str, _Hung] = field(default_factory=dict)

    def left_out(self, now_s: float) -> frozenset[str]:
        """The cards not to be asked now: all that hung, but one whose time has come.

        Never two are tried in one sample: the second would take the time of the healthy ones.
        """
        due = [name for name, hung in self._hung.items() if hung.again_s <= now_s]
        tried = min(due, key=lambda name: self._hung[name].again_s, default=None)
        return frozenset(name for name in self._hung if name != tried)

    def hung(self, name: str, now_s: float) -> None:
        """A call about this card did not return."""
        hangs = self._hung[name].hangs + 1 if name in self._hung else 1
        self._hung[name] = _Hung(hangs, now_s + wait_s(hangs))

    def answered(self, left_out: Collection[str]) -> None:
        """A sample came to its end without these cards: every other one is well."""
        self._hung = {name: hung for name, hung in self._hung.items() if name in left_out}

    def forget(self) -> None:
        """The driver begins anew, or no card is left that could be protected: what was said no longer counts."""
        self._hung = {}


def wait_s(hangs: int) -> float:
    """How long a card is left alone after so many hangs in a row: 0, 30 s, 1 min, ... 10 min."""
    return 0.0 if hangs <= 1 else float(min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** min(hangs - 2, 10)))
