"""Times at which the clock of the host was set back, as far as raw ticks show it."""

from __future__ import annotations

from gua.coverage import Span
from gua.store.session import Session


def clock_set_back(session: Session, window: Span) -> list[tuple[int, int]]:
    """(from_ms, to_ms) for each tick in the window that is stamped earlier than the tick stored before it.

    Imported runs, whose ids are below zero, are each looked at by themselves.
    """
    rows = session.rows(
        "SELECT before, ts_ms FROM (SELECT ts_ms, lag(ts_ms) OVER (PARTITION BY min(run, 0) ORDER BY id) AS before"
        " FROM tick WHERE id BETWEEN"
        " (SELECT min(id) FROM tick WHERE ts_ms >= ? AND ts_ms < ?) AND"
        " (SELECT max(id) FROM tick WHERE ts_ms >= ? AND ts_ms < ?)) WHERE ts_ms < before",
        (*window, *window),
    )
    return [(row[0], row[1]) for row in rows]
