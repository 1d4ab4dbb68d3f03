"""What part of the time a state had: a point and the bounds that unseen time leaves open. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from gua.model import State

_KNOWN = (State.ACTIVE.value, State.IDLE_HELD.value, State.TRULY_IDLE.value)


@dataclass(frozen=True)
class Share:
    """Fractions 0 to 1; None where there is nothing to divide. low <= point <= high where all are known."""

    point: Optional[float]
    low: Optional[float]
    high: Optional[float]


def share(states: Mapping[str, Any], state: State, expected_card_s: float) -> Share:
    """The share of one state in a `States` map of card-seconds.

    point: of the time whose state is known. low and high: of the expected time, if all unknown and unobserved
    time was another state, or this one. For State.UNKNOWN the point is of the expected time too.
    """
    amount = float(states[state.value])
    known = sum(float(states[name]) for name in _KNOWN)
    unknown = float(states[State.UNKNOWN.value])
    expected = max(expected_card_s, known + unknown)
    unseen = expected - known if state is not State.UNKNOWN else expected - known - unknown
    divisor = known if state is not State.UNKNOWN else expected
    return Share(_ratio(amount, divisor), _ratio(amount, expected), _ratio(amount + unseen, expected))


def format_share(value: Share) -> str:
    """`31 % (29-38 %)`; `31 %` when nothing was left unseen; `-` where there is nothing to divide; `<1 %`, never 0.

    Bounds are rounded outward, so that they stay true.
    """
    if value.point is None or value.low is None or value.high is None:
        return "-"
    point, low, high = percent_number(value.point), _outward(value.low, math.floor), _outward(value.high, math.ceil)
    return f"{point} %" if math.isclose(value.low, value.high, abs_tol=1e-9) else f"{point} % ({low}-{high} %)"


def percent_number(fraction: float) -> str:
    """`31`; `<1` and `>99` rather than 0 and 100 for what is neither."""
    value = round(fraction * 100, 6)
    if 0 < value < 0.5:
        return "<1"
    return ">99" if 99.5 <= value < 100 else f"{value:.0f}"


def _outward(fraction: float, rounding: Any) -> int:
    # 0.29 * 100 is 28.999999999999996: the noise of floats must not widen a bound by a whole percent
    return int(rounding(round(fraction * 100, 6)))


def _ratio(part: float, whole: float) -> Optional[float]:
    return min(1.0, part / whole) if whole > 0 else None
