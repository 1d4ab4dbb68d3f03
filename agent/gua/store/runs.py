"""Card-ticks gathered into runs in which nothing changed that a rule looks at, and what a rule makes of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from gua.coverage import Piece, split_evenly
from gua.store.codes import IDLE_HELD, STATE_OF_VERDICT
from gua.store.credit import CARD, COVERED, ENERGY, ENERGY_MS, LONG_IDLE, SAMPLES, SHARE
from gua.store.sums import WindowSums

_NO_TIME: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True)
class TickPart:
    """What one tick gives to each of its cards.

    start_ms, end_ms: from the first to the last time it covers, None when it covers nothing. reach_ms: how long
    before it a stretch may have been left unobserved. pieces: the covered time asked for. counted_in: the slot it is
    a sample of, None when it lies outside of what was asked for.
    """

    id: int
    start_ms: Optional[int]
    end_ms: int
    reach_ms: int
    pieces: tuple[Piece, ...]
    counted_in: Optional[int]


class Run:
    """One card's ticks in a row with the same verdicts and users. Amounts are those asked for only.

    verdicts: codes, one for each rule. users: ids of those who hold the card. goes_on: it follows the run before it
    without more time unobserved than one interval. slots: slot -> sums in the order of credit.COVERED and following.
    shares: user -> (share ms, millijoules, ms of known energy).
    """

    __slots__ = ("device", "end_ms", "goes_on", "shares", "slots", "start_ms", "users", "verdicts")

    def __init__(self, device: int, verdicts: tuple[int, ...], users: tuple[int, ...], *, goes_on: bool) -> None:
        self.device = device
        self.verdicts = verdicts
        self.users = users
        self.goes_on = goes_on
        self.start_ms: Optional[int] = None
        self.end_ms = 0
        self.slots: dict[int, list[int]] = {}
        self.shares: dict[int, tuple[int, int, int]] = {}

    def add(self, tick: TickPart, power_dw: Optional[int]) -> None:
        if tick.start_ms is not None:
            self.start_ms = tick.start_ms if self.start_ms is None else self.start_ms
            self.end_ms = tick.end_ms
        for slot, start, end in tick.pieces:
            sums = self._of_slot(slot)
            length_ms = end - start
            sums[COVERED] += length_ms
            energy_mj = None
            if power_dw is not None:
                energy_mj = power_dw * length_ms // 10
                sums[ENERGY] += energy_mj
                sums[ENERGY_MS] += length_ms
            if len(self.users) > 1:
                self._share(length_ms, energy_mj, start)
        if tick.counted_in is not None:
            self._of_slot(tick.counted_in)[SAMPLES] += 1

    def totals(self) -> list[int]:
        return [sum(column) for column in zip(*self.slots.values())] if self.slots else [0, 0, 0, 0]

    def user_sums(self, user: int, totals: Sequence[int]) -> tuple[int, ...]:
        """One user's sums in the order of credit.CARD and following, long idle left out."""
        covered_ms, samples, energy_mj, energy_ms = totals
        if len(self.users) < 2:
            return covered_ms, covered_ms, 0, 0, energy_mj, energy_ms, samples
        share_ms, own_mj, own_ms = self.shares.get(user, _NO_TIME)
        return covered_ms, share_ms, covered_ms, 0, own_mj, own_ms, samples

    def _of_slot(self, slot: int) -> list[int]:
        found = self.slots.get(slot)
        if found is None:
            found = self.slots[slot] = [0, 0, 0, 0]
        return found

    def _share(self, length_ms: int, energy_mj: Optional[int], turn: int) -> None:
        count = len(self.users)
        lengths, energies = split_evenly(length_ms, count, turn), split_evenly(energy_mj or 0, count, turn)
        for user, share_ms, user_mj in zip(self.users, lengths, energies):
            before = self.shares.get(user, _NO_TIME)
            known_ms = 0 if energy_mj is None else share_ms
            self.shares[user] = (before[0] + share_ms, before[1] + user_mj, before[2] + known_ms)


class _Stretch:
    """An idle-held stretch of one card that goes on. held_ms: user -> time asked for."""

    __slots__ = ("end_ms", "held_ms", "start_ms")

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.end_ms = start_ms
        self.held_ms: dict[int, int] = {}


class RuleSums:
    """The sums under one rule, growing run by run. number: the rule's place in `Run.verdicts`."""

    def __init__(self, number: int, long_idle_ms: int, unattributed: int) -> None:
        self.sums = WindowSums()
        self._number = number
        self._long_idle_ms = long_idle_ms
        self._unattributed = unattributed
        self._stretches: dict[int, _Stretch] = {}

    def take(self, run: Run, totals: Sequence[int]) -> None:
        """Take in a run that is over; of each card in the order of its ticks."""
        verdict = run.verdicts[self._number]
        state = STATE_OF_VERDICT[verdict]
        _add(self.sums.cards[run.device, verdict], totals)
        for slot, sums in run.slots.items():
            self.sums.slots[slot, state] += sums[COVERED]
        users = run.users or ((self._unattributed,) if verdict == IDLE_HELD else ())
        for user in users:
            own = run.user_sums(user, totals)
            _add(self.sums.users[user, state], own)
            self.sums.held[run.device, state] += own[SHARE]
            self.sums.user_cards[user, run.device] += own[CARD]
        self._follow(run, verdict, users, totals[COVERED])

    def finish(self) -> WindowSums:
        for device in list(self._stretches):
            self._end(device)
        return self.sums

    def _follow(self, run: Run, verdict: int, users: Sequence[int], covered_ms: int) -> None:
        if verdict != IDLE_HELD:
            self._end(run.device)
            return
        if run.start_ms is None:
            return
        if not run.goes_on:
            self._end(run.device)
        stretch = self._stretches.get(run.device)
        if stretch is None:
            stretch = self._stretches[run.device] = _Stretch(run.start_ms)
        stretch.end_ms = run.end_ms
        for user in users:
            stretch.held_ms[user] = stretch.held_ms.get(user, 0) + covered_ms

    def _end(self, device: int) -> None:
        stretch = self._stretches.pop(device, None)
        if stretch is None or stretch.end_ms - stretch.start_ms < self._long_idle_ms:
            return
        for user, held_ms in stretch.held_ms.items():
            self.sums.users[user, STATE_OF_VERDICT[IDLE_HELD]][LONG_IDLE] += held_ms


def _add(sums: list[int], more: Sequence[int]) -> None:
    for position, amount in enumerate(more, start=CARD):
        sums[position] += amount
