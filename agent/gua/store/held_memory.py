"""How much memory each user held on cards, from the ledger of holds: cost grows with holds, not with ticks."""

from __future__ import annotations

from typing import Optional

from gua.coverage import Span
from gua.store.codes import GRAPHICS
from gua.store.session import Session

# Holds of compute and MPS processes that touch the window.
_TOUCHING = "until_ms > :since AND since_ms < :until AND type <> :graphics"
# What each held, by time; a reading stands until the next. The tick of one that goes on for months may be gone.
_READINGS = (
    "SELECT hold.id AS hold, hold_memory.memory_mb AS memory_mb, until_ms, coalesce(ts_ms, since_ms) AS start_ms,"
    " lead(ts_ms) OVER (PARTITION BY hold.id ORDER BY hold_memory.tick) AS end_ms"
    " FROM hold JOIN hold_memory ON hold_memory.hold = hold.id LEFT JOIN tick ON tick.id = hold_memory.tick"
    # most hold the same all their life, and that is their last reading
    " WHERE hold.id IN (SELECT hold FROM hold_memory GROUP BY hold HAVING count(*) > 1)"
    f" AND {_TOUCHING}"
)
_MEANS = (
    "SELECT hold, sum(memory_mb * ms) * 1.0 / sum(ms) AS mean_mb FROM (SELECT hold, memory_mb,"
    f" max(0, min(coalesce(end_ms, until_ms), :until) - max(start_ms, :since)) AS ms FROM ({_READINGS}))"
    " WHERE memory_mb IS NOT NULL GROUP BY hold HAVING sum(ms) > 0"
)
# Readings go with raw ticks; the last one stays with its hold.
_HELD = (
    "SELECT user, device, hold.id AS hold, max(since_ms, :since) AS start_ms, min(until_ms, :until) AS end_ms,"
    " coalesce(mean_mb, hold.memory_mb) AS mean_mb FROM hold JOIN process ON process.id = hold.process"
    f" LEFT JOIN ({_MEANS}) AS means ON means.hold = hold.id WHERE {_TOUCHING}"
)
# reached_ms: the end of all that the user held on the card before, so that time is only counted beyond it.
_IN_ORDER = (
    "SELECT user, mean_mb, start_ms, end_ms, coalesce(max(end_ms) FILTER (WHERE mean_mb IS NOT NULL) OVER"
    " (PARTITION BY user, device ORDER BY start_ms, hold ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)"
    f" AS reached_ms FROM ({_HELD})"
)
_BY_USER = (
    "SELECT user, sum((end_ms - start_ms) * mean_mb) * 1.0 / nullif("
    "sum(CASE WHEN mean_mb IS NOT NULL THEN max(0, end_ms - max(start_ms, reached_ms)) END), 0)"
    f" FROM ({_IN_ORDER}) GROUP BY user"
)


def mean_memory_mb(session: Session, window: Span) -> dict[int, Optional[float]]:
    """MiB held on each card by user id: the mean over the time in which the user held a card at all.

    Each process counts with the mean of its own readings within the window, or with its last one where they are gone.
    None for a user of whose processes none had one.
    """
    return dict(session.rows(_BY_USER, {"since": window[0], "until": window[1], "graphics": GRAPHICS}))
