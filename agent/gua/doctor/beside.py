"""Work done beside the checks and awaited for a limited time: a database on a dead server must not hang the doctor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Optional, TypeVar

T = TypeVar("T")


class Beside(Generic[T]):
    """What `work` gives, worked out in a thread that the program's end does not wait for."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._found: Optional[T] = None
        self._error: Optional[Exception] = None
        self._thread = threading.Thread(target=self._run, name="gua-doctor", daemon=True)
        self._thread.start()

    def result(self, timeout_s: float) -> Optional[T]:
        """The result; None when it is not there after `timeout_s`. Raises what the work raised."""
        self._thread.join(max(0.0, timeout_s))
        if self._error is not None:
            raise self._error
        return self._found

    def _run(self) -> None:
        try:
            self._found = self._work()
        except Exception as exc:  # noqa: BLE001 - handed on to whoever asks for the result
            self._error = exc
