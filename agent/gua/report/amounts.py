"""State maps: whole milliseconds and millijoules in, seconds and joules out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from gua.report.document import States
from gua.store.codes import STATE_OF_VERDICT, STATES


def verdict_states(verdicts: Mapping[int, list[int]], position: int) -> States:
    """The amounts at one position of each verdict's sums, by state."""
    totals = [0] * len(STATES)
    for verdict, amounts in verdicts.items():
        totals[STATE_OF_VERDICT[verdict]] += amounts[position]
    return states_of(totals)


def states_of(thousandths: Iterable[int]) -> States:
    """A state map of amounts given in thousandths, in the order of codes.STATES."""
    return cast(States, {state.value: amount / 1000 for state, amount in zip(STATES, thousandths)})
