"""Raw ticks are kept for a while, sums for ever."""

from __future__ import annotations

from collections.abc import Iterable

from gua_fleet.store.session import Session

_OLD = "(SELECT id FROM tick WHERE history = ? AND ts_ms < ?)"


def remove_raw_of(session: Session, names: Iterable[str], now_ms: int, raw_ms: int) -> None:
    """Remove what is older than `raw_ms` of these hosts, of which a pull came to no end: they may never answer again.

    By this machine's clock, or theirs when they were pulled last, whichever is behind.
    """
    for name in names:
        with session.writing():
            for host, ahead_ms in session.rows(
                "SELECT host.id, min(clock_ahead_ms) FROM host JOIN history ON history.host = host.id"
                " WHERE host.name = ? GROUP BY host.id",
                (name,),
            ):
                remove_raw(session, host, now_ms + min(0, ahead_ms) - raw_ms)


def remove_raw(session: Session, host: int, cut_ms: int) -> int:
    """Remove the raw ticks of a host (an id) that began before `cut_ms`. Gives how many ticks went."""
    gone = 0
    for (history,) in session.rows("SELECT id FROM history WHERE host = ?", (host,)):
        gone += _remove(session, history, cut_ms)
    return gone


def _remove(session: Session, history: int, cut_ms: int) -> int:
    found = session.value("SELECT count(*) FROM tick WHERE history = ? AND ts_ms < ?", (history, cut_ms))
    if not found:
        return 0
    for table in ("sample", "tick_fragment"):
        session.execute(f"DELETE FROM {table} WHERE history = ? AND tick IN {_OLD}", (history, history, cut_ms))
    session.execute("DELETE FROM tick WHERE history = ? AND ts_ms < ?", (history, cut_ms))
    # A reading of memory stands until the next one, and what samples share outlives the tick it was made for.
    session.execute(
        "DELETE FROM hold_memory WHERE history = ? AND tick < (SELECT coalesce(min(id), 0) FROM tick WHERE history = ?)"
        " AND EXISTS (SELECT 1 FROM hold_memory AS later WHERE later.history = hold_memory.history"
        " AND later.hold = hold_memory.hold AND later.tick > hold_memory.tick"
        " AND later.tick <= (SELECT coalesce(min(id), 0) FROM tick WHERE history = ?))",
        (history, history, history),
    )
    session.execute(
        "DELETE FROM occupancy WHERE history = ?"
        " AND first_tick < (SELECT coalesce(min(id), 0) FROM tick WHERE history = ?)"
        " AND NOT EXISTS (SELECT 1 FROM sample WHERE sample.history = occupancy.history"
        " AND sample.occupancy = occupancy.id)",
        (history, history),
    )
    session.execute(
        "UPDATE history SET raw_since_ms = ? WHERE id = ? AND (raw_since_ms IS NULL OR raw_since_ms < ?)",
        (cut_ms, history, cut_ms),
    )
    return int(found)
