"""Whether a database is whole, looked at for a limited time."""

from __future__ import annotations

import sqlite3
import time
from typing import Optional

from gua.store.session import Session


class TooLarge(Exception):
    """The time was over before all of the database had been looked at."""


def find_damage(session: Session, limit_s: float) -> Optional[str]:
    """The first thing that is broken, in SQLite's words; None when nothing is. Raises TooLarge after `limit_s`.

    It reads the whole file, and replaces the limit that the reader's queries have: ask it last.
    """
    until_s = time.monotonic() + limit_s
    session.connection.set_progress_handler(lambda: int(time.monotonic() > until_s), 10_000)
    try:
        found = " ".join(str(session.rows("PRAGMA quick_check(1)")[0][0]).split())
    except sqlite3.OperationalError as exc:
        if "interrupted" in str(exc):
            raise TooLarge from exc
        raise
    return None if found == "ok" else found
