"""History of gpu-usage-audit that lay in the database's place is imported beside the daemon, in a process of its own.

So no tick waits for more than one of its short transactions. One that was interrupted goes on when a daemon starts.
"""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from gua.own_program import FOLDER, own_environment

logger = logging.getLogger(__name__)

# After SIGTERM; a batch takes a fraction of a second, and one that is killed in mid-batch leaves nothing behind.
_PATIENCE_S = 0.5


@contextlib.contextmanager
def imports_beside(database: Path) -> Iterator[None]:
    """Import what waits, one after the other, until the block ends."""
    from gua.store.files import waiting_imports

    waiting = waiting_imports(database)
    work = _Imports(database, waiting)
    if waiting:
        work.start()
    try:
        yield
    finally:
        work.stop()


class _Imports:
    def __init__(self, database: Path, waiting: list[Path]) -> None:
        self._database = database
        self._waiting = waiting
        self._lock = threading.Lock()
        self._child: Optional[subprocess.Popen[bytes]] = None
        self._stopped = False

    def start(self) -> None:
        threading.Thread(target=self._work, name="gua-imports", daemon=True).start()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            child = self._child
        if child is None:
            return
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_PATIENCE_S)
        if child.poll() is None:
            child.kill()

    def _work(self) -> None:
        for old in self._waiting:
            child = self._begin(old)
            if child is None:
                return
            status = child.wait()
            if self._stopped:
                return
            if status == 0:
                logger.info("the history in %s is imported", old)
            else:
                logger.error("%s: import ended with status %d; it goes on when the daemon starts again", old, status)

    def _begin(self, old: Path) -> Optional[subprocess.Popen[bytes]]:
        line = [sys.executable, "-m", "gua", "import", str(old.absolute()), "--db", str(self._database.absolute())]
        line.append("--adopt")
        with self._lock:
            if self._stopped:
                return None
            self._child = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=FOLDER, env=own_environment()
            )
            return self._child
