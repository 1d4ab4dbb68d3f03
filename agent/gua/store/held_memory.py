"""How much memory each user held on cards, from the ledger of holds: cost grows with holds, not with ticks."""

from __future__ import annotations

from typing import Optional

from gua.coverage import Span
from gua.store.codes import GRAPHICS
from gua.store.session import Session

# reached_ms: the end of all that the user held on the card before, so that time is only counted beyond it.
_HELD = (
    "SELECT user, memory_mb, max(since_ms, :since) AS start_ms, min(until_ms, :until) AS end_ms,"
    " coalesce(max(min(until_ms, :until)) FILTER (WHERE memory_mb IS NOT NULL) OVER (PARTITION BY user, device"
    " ORDER BY since_ms, hold.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS reached_ms"
    " FROM hold JOIN process ON process.id = hold.process"
    " WHERE until_ms > :since AND since_ms < :until AND type <> :graphics"
)
_MEAN = (
    "SELECT user, sum((end_ms - start_ms) * memory_mb) * 1.0 / nullif("
    "sum(CASE WHEN memory_mb IS NOT NULL THEN max(0, end_ms - max(start_ms, reached_ms)) END), 0)"
    f" FROM ({_HELD}) GROUP BY user"
)


def mean_memory_mb(session: Session, window: Span) -> dict[int, Optional[float]]:
    """MiB held on each card by user id: the mean over the time in which the user held a card at all.

    Each process counts with its last reading. None for a user of whose processes none had one.
    """
    asked = {"since": window[0], "until": window[1], "graphics": GRAPHICS}
    return dict(session.rows(_MEAN, asked))
