"""How much memory each user held on cards, from the ledger of holds: cost grows with holds, not with ticks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Optional

from gua.coverage import Span, clip, length_ms
from gua.store.codes import GRAPHICS
from gua.store.session import Session

_Piece = tuple[int, int, float]
"""(start_ms, end_ms, MiB)"""


# Holds of compute and MPS processes that touch the window.
_TOUCHING = "until_ms > ? AND since_ms < ? AND type <> ?"
# What each held, by time; a reading stands until the next. The tick of one that goes on for months may be gone.
_READINGS = (
    "SELECT hold.id AS hold, hold_memory.memory_mb AS memory_mb, until_ms, coalesce(ts_ms, since_ms) AS start_ms,"
    " lead(ts_ms) OVER (PARTITION BY hold.id ORDER BY hold_memory.tick) AS end_ms"
    " FROM hold JOIN hold_memory ON hold_memory.hold = hold.id LEFT JOIN tick ON tick.id = hold_memory.tick"
    f" WHERE {_TOUCHING}"
)
_MEANS = (
    "SELECT hold, sum(memory_mb * ms) * 1.0 / sum(ms) FROM (SELECT hold, memory_mb,"
    f" max(0, min(coalesce(end_ms, until_ms), ?) - max(start_ms, ?)) AS ms FROM ({_READINGS}))"
    " WHERE memory_mb IS NOT NULL GROUP BY hold HAVING sum(ms) > 0"
)


def mean_memory_mb(session: Session, window: Span) -> dict[int, Optional[float]]:
    """MiB held on each card by user id: the mean over the time in which the user held a card at all.

    Each process counts with the mean of its own readings within the window. None for a user of whose processes none
    had one.
    """
    touching = (*window, GRAPHICS)
    means: dict[int, float] = dict(session.rows(_MEANS, (window[1], window[0], *touching)))
    pieces: defaultdict[tuple[int, int], list[_Piece]] = defaultdict(list)
    users: set[int] = set()
    for hold, user, device, since_ms, until_ms in session.rows(
        "SELECT hold.id, user, device, since_ms, until_ms FROM hold JOIN process ON process.id = hold.process"
        f" WHERE {_TOUCHING}",
        touching,
    ):
        users.add(user)
        if hold in means:
            pieces[user, device].append((*clip((since_ms, until_ms), window), means[hold]))
    sums: defaultdict[int, list[float]] = defaultdict(lambda: [0, 0])
    for (user, _), held in pieces.items():
        sums[user][0] += sum((end - start) * memory_mb for start, end, memory_mb in held)
        sums[user][1] += _union_ms(held)
    return {user: sums[user][0] / sums[user][1] if sums[user][1] else None for user in users}


def _union_ms(pieces: Sequence[_Piece]) -> int:
    total, reached = 0, 0
    for start, end, _ in sorted(pieces):
        total += length_ms((max(start, reached), end))
        reached = max(reached, end)
    return total
