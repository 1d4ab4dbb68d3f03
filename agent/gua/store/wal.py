"""The write-ahead log beside the database: kept small, and told of where that cannot be."""

from __future__ import annotations

import logging
import os

logger = logging.getLogger(__name__)

# SQLite folds the log back every 1,000 pages (4 MB) and then begins it anew; a longer one is cut to this.
LIMIT_BYTES = 16 << 20

# Longer than that, somebody's reading has kept the log from being begun anew for long: half a day, with eight cards.
SAY_FROM_BYTES = 64 << 20


class WalWatch:
    """Says once when the log has grown long, again each time it has doubled, and once when it is short again."""

    def __init__(self, database: str) -> None:
        self._path = f"{database}-wal"
        self._said_bytes = 0

    def look(self) -> None:
        size = _size(self._path)
        if size >= max(SAY_FROM_BYTES, 2 * self._said_bytes):
            logger.warning(
                "%s has grown to %d MB: some program has been reading the database for long and keeps it so; end it",
                self._path,
                size >> 20,
            )
            self._said_bytes = size
        elif self._said_bytes and size <= LIMIT_BYTES:
            logger.info("%s is short again", self._path)
            self._said_bytes = 0


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
