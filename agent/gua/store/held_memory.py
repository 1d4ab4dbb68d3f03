"""How much memory each user held on cards, from the ledger of holds: cost grows with holds, not with ticks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Optional

from gua.coverage import Span, clip, length_ms
from gua.store.codes import GRAPHICS
from gua.store.session import Session

_Piece = tuple[int, int, int]
"""(start_ms, end_ms, MiB)"""


def mean_memory_mb(session: Session, window: Span) -> dict[int, Optional[float]]:
    """MiB held on each card by user id: the mean over the time in which the user held a card at all.

    Each process counts with its last reading. None for a user of whose processes none had one.
    """
    pieces: defaultdict[tuple[int, int], list[_Piece]] = defaultdict(list)
    users: set[int] = set()
    for user, device, since_ms, until_ms, memory_mb in session.rows(
        "SELECT user, device, since_ms, until_ms, memory_mb FROM hold JOIN process ON process.id = hold.process"
        " WHERE until_ms > ? AND since_ms < ? AND type <> ?",
        (*window, GRAPHICS),
    ):
        users.add(user)
        if memory_mb is not None:
            pieces[user, device].append((*clip((since_ms, until_ms), window), memory_mb))
    sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
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
