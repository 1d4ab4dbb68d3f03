"""Card-ticks gathered into runs in which neither verdict nor holders changed, and what they sum up to. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from gua.coverage import SLOT_MS, Piece, Span, split_evenly
from gua.store.codes import IDLE_HELD, STATE_OF_VERDICT, STATES
from gua.store.credit import CARD, COVERED, ENERGY, ENERGY_MS, LONG_IDLE, SAMPLES, SHARE
from gua.store.steps import StepSums, step_slots
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


@dataclass(frozen=True)
class Present:
    """Who holds a card: ids of users, ascending, and of holds."""

    users: tuple[int, ...]
    holds: tuple[int, ...]


NOBODY = Present((), ())


@dataclass
class Rejudged:
    """Sums as a rule would have had them. holds: id -> ms within the window by state, and long idle-held ones last."""

    sums: WindowSums
    holds: defaultdict[int, list[int]]
    steps: StepSums


class Run:
    """One card's ticks in a row with the same verdict and holders. Amounts are those asked for only.

    goes_on: it follows the run before it without more time unobserved than one interval. slots: slot -> sums in the
    order of credit.COVERED and following. shares: user -> (share ms, millijoules, ms of known energy).
    """

    __slots__ = ("device", "end_ms", "goes_on", "present", "shares", "slots", "start_ms", "users", "verdict")

    def __init__(self, device: int, verdict: int, present: Present, *, goes_on: bool) -> None:
        self.device = device
        self.verdict = verdict
        self.present = present
        self.users = present.users
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
    """An idle-held stretch of one card that goes on. users, holds: id -> time asked for."""

    __slots__ = ("end_ms", "holds", "start_ms", "users")

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.end_ms = start_ms
        self.users: defaultdict[int, int] = defaultdict(int)
        self.holds: defaultdict[int, int] = defaultdict(int)


class RuleSums:
    """The sums under one rule, growing run by run."""

    def __init__(self, window: Span, long_idle_ms: int, unattributed: int) -> None:
        first, end = window[0] // SLOT_MS, -(-window[1] // SLOT_MS)
        self._found = Rejudged(WindowSums(), defaultdict(_hold_sums), StepSums(first, end, step_slots(end - first), {}))
        self._long_idle_ms = long_idle_ms
        self._unattributed = unattributed
        self._stretches: dict[int, _Stretch] = {}

    def take(self, run: Run) -> None:
        """Take in a run that is over; of each card in the order of its ticks."""
        totals = run.totals()
        users = run.users or ((self._unattributed,) if run.verdict == IDLE_HELD else ())
        if any(totals):  # one around the window only tells how long a stretch is: no card or user is there by it
            self._add_up(run, users, totals)
        self._follow(run, users, totals[COVERED])

    def _add_up(self, run: Run, users: Sequence[int], totals: Sequence[int]) -> None:
        state, sums = STATE_OF_VERDICT[run.verdict], self._found.sums
        _add(sums.cards[run.device, run.verdict], totals)
        self._take_slots(run, state)
        for user in users:
            own = run.user_sums(user, totals)
            _add(sums.users[user, state], own)
            sums.held[run.device, state] += own[SHARE]
            sums.user_cards[user, run.device] += own[CARD]
        for hold in run.present.holds:
            self._found.holds[hold][state] += totals[COVERED]

    def _take_slots(self, run: Run, state: int) -> None:
        steps = self._found.steps
        for slot, sums in run.slots.items():
            self._found.sums.slots[slot, state] += sums[COVERED]
            step = steps.ms.setdefault((run.device, (slot - steps.first) // steps.step), [0] * len(STATES))
            step[state] += sums[COVERED]

    def finish(self) -> Rejudged:
        for device in list(self._stretches):
            self._end(device)
        return self._found

    def _follow(self, run: Run, users: Sequence[int], covered_ms: int) -> None:
        if run.verdict != IDLE_HELD:
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
            stretch.users[user] += covered_ms
        for hold in run.present.holds:
            stretch.holds[hold] += covered_ms

    def _end(self, device: int) -> None:
        stretch = self._stretches.pop(device, None)
        if stretch is None or stretch.end_ms - stretch.start_ms < self._long_idle_ms:
            return
        for user, held_ms in stretch.users.items():
            self._found.sums.users[user, STATE_OF_VERDICT[IDLE_HELD]][LONG_IDLE] += held_ms
        for hold, held_ms in stretch.holds.items():
            self._found.holds[hold][-1] += held_ms


def _hold_sums() -> list[int]:
    return [0] * (len(STATES) + 1)


def _add(sums: list[int], more: Sequence[int]) -> None:
    for position, amount in enumerate(more):
        sums[position] += amount
