"""Raw ticks are kept for a while, sums for ever. Old ticks go a few at a time, so that no tick is ever late for it.

Space they leave is used again by the rows to come: once the oldest ticks go, the file stops growing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from gua.store.raw import id_runs
from gua.store.sample_id import sample_ids
from gua.store.samples import OCCUPANCY_TICKS
from gua.store.session import Session

# Ticks removed at once. Fewer are not worth a transaction.
SLICE_TICKS = 40

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Retention:
    """How long raw ticks, and the names of users in sums and holds, are kept, in milliseconds."""

    raw_ms: int
    user_ms: int


def believed_now_ms(session: Session, now_ms: int, interval_ms: int) -> Optional[int]:
    """A time that is certainly past, by which things may be called old; None where there is none yet.

    A clock that someone set ahead must not delete history before there was a day's worth of ticks to notice it in,
    so it is the clock of a day's worth of ticks ago, where that is earlier than now.
    """
    day_of_ticks = max(1, DAY_MS // max(1, interval_ms))
    rows = session.rows(
        "SELECT ts_ms FROM tick WHERE id <= (SELECT max(id) FROM tick) - ? ORDER BY id DESC LIMIT 1", (day_of_ticks,)
    )
    return min(now_ms, int(rows[0][0])) if rows else None


def old_ticks(session: Session, cut_ms: int) -> list[tuple[int, int]]:
    """(id, end of what it covers) of the oldest ticks that began before `cut_ms` and that nothing needs.

    None where they are too few to bother. Needed are the newest tick of each card, and the ticks of an idle-held
    stretch that may yet turn long.
    """
    rows = session.rows(
        "SELECT id, max(ts_ms + 1, ts_ms + cover_until, coalesce("
        "(SELECT max(until_ms) FROM tick_fragment WHERE tick = tick.id), 0)) FROM tick WHERE ts_ms < ?"
        " AND id < (SELECT coalesce(min(first_tick), 1 << 62) FROM idle_stretch WHERE is_open AND NOT is_long)"
        " AND id NOT IN (SELECT tick FROM card_now JOIN device ON device.id = device WHERE retired_at_ms IS NULL)"
        " ORDER BY ts_ms LIMIT ?",
        (cut_ms, SLICE_TICKS),
    )
    return rows if len(rows) == SLICE_TICKS else []


def remove_ticks(session: Session, ticks: Sequence[tuple[int, int]]) -> None:
    """Remove these ticks and their samples, and say until when raw ticks are gone."""
    connection = session.connection
    for first, last in id_runs(sorted(tick for tick, _ in ticks)):
        connection.execute("DELETE FROM sample WHERE id BETWEEN ? AND ?", sample_ids(first, last))
        connection.execute("DELETE FROM tick_fragment WHERE tick BETWEEN ? AND ?", (first, last))
        connection.execute("DELETE FROM tick WHERE id BETWEEN ? AND ?", (first, last))
        _remove_memory(session, first, last)
    connection.execute("DELETE FROM occupancy WHERE first_tick < (SELECT min(id) FROM tick) - ?", (OCCUPANCY_TICKS,))
    connection.execute(
        "UPDATE store SET raw_since_ms = max(coalesce(raw_since_ms, 0), ?)", (max(end_ms for _, end_ms in ticks),)
    )


def _remove_memory(session: Session, first: int, last: int) -> None:
    """What holds held then; of one that goes on, all but the newest figure."""
    connection = session.connection
    connection.execute(
        "DELETE FROM hold_memory WHERE hold IN (SELECT id FROM hold WHERE NOT is_open AND last_tick BETWEEN ? AND ?)",
        (first, last),
    )
    for (hold,) in session.rows("SELECT id FROM hold WHERE is_open AND first_tick <= ?", (last,)):
        connection.execute(
            "DELETE FROM hold_memory WHERE hold = ? AND tick <"
            " (SELECT max(tick) FROM hold_memory WHERE hold = ? AND tick <= ?)",
            (hold, hold, last + 1),
        )
