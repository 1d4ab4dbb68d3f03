"""What is here of other recorders' history, so that nothing is taken in twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from gua.store.session import Session


class PastIndex:
    """What is here of other recorders' history. Reads only."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._runs: dict[str, tuple[int, int]] = {
            row[0]: (row[1], row[2])
            for row in session.rows(
                "SELECT boot_id, run.id, coalesce(ended_ms, started_ms) FROM run JOIN boot ON boot.id = run.boot"
                " WHERE run.id < 0"
            )
        }

    def is_stored(self, key: str, ts_ms: int) -> bool:
        """Whether this tick of this run was taken in before; also one whose raw tick is gone since."""
        known = self._runs.get(key)
        if known is None:
            return False
        run, ended_ms = known
        if self._session.rows("SELECT 1 FROM tick WHERE ts_ms = ? AND run = ?", (ts_ms, run)):
            return True
        # asked last and anew, for a daemon may remove raw ticks meanwhile
        raw_since_ms = self._session.rows("SELECT max(raw_since_ms) FROM store")[0][0]
        return raw_since_ms is not None and ts_ms < raw_since_ms and ts_ms <= ended_ms

    def last_tick(self, keys: Iterable[str]) -> Optional[int]:
        """The newest tick here of any of these runs; None when there is none, or all are gone."""
        runs = [self._runs[key][0] for key in keys if key in self._runs]
        marks = ", ".join("?" * len(runs))
        row = self._session.rows(f"SELECT max(id) FROM tick WHERE run IN ({marks})", runs)[0]
        return None if row[0] is None else int(row[0])
