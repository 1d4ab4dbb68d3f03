"""How long to leave a board alone that did not take a state. Pure."""

from __future__ import annotations

LONGEST_S = 300.0


def backoff_s(failures: int, first_s: float, chance: float) -> float:
    """Seconds until the next attempt: doubled with each failure, at most five minutes.

    failures: in a row, >= 1. first_s: the longest wait after the first one. chance: 0.0-1.0, random, so that hosts
    that lost their board together do not come back together: takes up to half of the time away.
    """
    longest_s = min(LONGEST_S, first_s * 2.0 ** min(failures - 1, 60))
    return longest_s * (1 - chance / 2)
