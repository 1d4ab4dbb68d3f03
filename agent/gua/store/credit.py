"""What one card-tick adds to the sums: per slot, card, rule and state, and per user. Pure.

The writer credits whole ticks, the reader credits the part of a tick that lies in its window: the same code, so
that a figure from raw ticks and the same figure from roll-ups cannot differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Optional

from gua.coverage import Piece, split_evenly
from gua.store.codes import IDLE_HELD, STATE_OF_VERDICT

CardKey = tuple[int, int, int, int]
"""(slot, device, rule, verdict)"""

UserKey = tuple[int, int, int, int, int]
"""(slot, user, device, rule, state)"""

# Positions in a card's and a user's list of sums, in the order of the columns of card_slot and user_slot.
COVERED, SAMPLES, ENERGY, ENERGY_MS = range(4)
CARD, SHARE, SHARED, LONG_IDLE, USER_ENERGY, USER_ENERGY_MS, USER_SAMPLES = range(7)


@dataclass(frozen=True)
class Sample:
    """One judged card-tick as crediting sees it.

    users: ids of those who hold the card, ascending, each once. power_dw: tenths of a watt, None where unknown.
    long_idle: it belongs to an idle-held stretch that is long.
    """

    device: int
    rule: int
    verdict: int
    users: tuple[int, ...]
    power_dw: Optional[int]
    long_idle: bool = False


def _card_sums() -> list[int]:
    return [0] * 4


def _user_sums() -> list[int]:
    return [0] * 7


@dataclass
class Credits:
    """Sums in milliseconds and millijoules, growing."""

    cards: defaultdict[CardKey, list[int]] = field(default_factory=lambda: defaultdict(_card_sums))
    users: defaultdict[UserKey, list[int]] = field(default_factory=lambda: defaultdict(_user_sums))

    def add(self, sample: Sample, pieces: Sequence[Piece], counted_in: Optional[int]) -> None:
        """Credit one card-tick: its pieces of time, and itself as one sample of slot `counted_in` (None: not)."""
        for slot, start, end in pieces:
            self._add_piece(sample, slot, end - start, start)
        if counted_in is not None:
            self.cards[counted_in, sample.device, sample.rule, sample.verdict][SAMPLES] += 1
            for user in sample.users:
                self.users[_user_key(sample, counted_in, user)][USER_SAMPLES] += 1

    def add_long_idle(self, sample: Sample, pieces: Iterable[Piece]) -> None:
        """Credit as long idle-held what was credited before, when its stretch was not long yet."""
        for slot, start, end in pieces:
            for user in sample.users:
                self.users[_user_key(sample, slot, user)][LONG_IDLE] += end - start

    def _add_piece(self, sample: Sample, slot: int, length_ms: int, turn: int) -> None:
        energy_mj = None if sample.power_dw is None else sample.power_dw * length_ms // 10
        card = self.cards[slot, sample.device, sample.rule, sample.verdict]
        card[COVERED] += length_ms
        if energy_mj is not None:
            card[ENERGY] += energy_mj
            card[ENERGY_MS] += length_ms
        if sample.users:
            self._share_piece(sample, slot, length_ms, energy_mj, turn)

    def _share_piece(self, sample: Sample, slot: int, length_ms: int, energy_mj: Optional[int], turn: int) -> None:
        count = len(sample.users)
        shares = split_evenly(length_ms, count, turn)
        energies = split_evenly(energy_mj or 0, count, turn)
        for user, share_ms, user_mj in zip(sample.users, shares, energies):
            sums = self.users[_user_key(sample, slot, user)]
            sums[CARD] += length_ms
            sums[SHARE] += share_ms
            sums[SHARED] += length_ms if count > 1 else 0
            sums[LONG_IDLE] += length_ms if sample.long_idle and sample.verdict == IDLE_HELD else 0
            sums[USER_ENERGY] += user_mj
            sums[USER_ENERGY_MS] += 0 if energy_mj is None else share_ms


def _user_key(sample: Sample, slot: int, user: int) -> UserKey:
    return slot, user, sample.device, sample.rule, STATE_OF_VERDICT[sample.verdict]
