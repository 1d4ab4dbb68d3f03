"""What each card did step by step over a window, from roll-ups: as many steps as a picture can show, no more."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from gua.store.codes import STATE_OF_VERDICT, STATES
from gua.store.session import Session

# A picture of a page's width shows no more columns than this.
MOST_STEPS = 200
# Steps in slots of a quarter of an hour: up to a day they divide it, beyond that they are whole days.
_STEPS_SLOTS = (1, 2, 4, 8, 12, 16, 24, 48, 96, 192, 672, 1344, 2688)


@dataclass(frozen=True)
class StepSums:
    """first, end: slots, end not included. step: slots of one. ms: (device, step number) -> covered ms by state."""

    first: int
    end: int
    step: int
    ms: dict[tuple[int, int], list[int]]


def steps_between(session: Session, first: int, end: int) -> StepSums:
    """The slots first <= slot < end in equal steps, beginning at `first`."""
    step = step_slots(end - first)
    sums: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * len(STATES))
    for device, number, verdict, covered_ms in session.rows(
        "SELECT device, (slot - ?) / ?, verdict, sum(covered_ms) FROM card_slot WHERE slot >= ? AND slot < ?"
        " GROUP BY 1, 2, 3",
        (first, step, first, end),
    ):
        sums[device, number][STATE_OF_VERDICT[verdict]] += covered_ms
    return StepSums(first, end, step, dict(sums))


def step_slots(slots: int) -> int:
    """The slots of one step, so that there are at most MOST_STEPS steps of them."""
    fitting = (step for step in _STEPS_SLOTS if -(-slots // step) <= MOST_STEPS)
    return next(fitting, -(-slots // MOST_STEPS))
