"""Keeps a broken host from filling its disk with our log: so many lines at once, and then one every few minutes."""

from __future__ import annotations

import logging
import time
from typing import Callable

# A day of nothing but trouble makes 40 + 240 lines; the longest ones together are below 100 KB.
_AT_ONCE = 40
_ONE_MORE_S = 360.0


class LogBudget(logging.Filter):
    """Lets a line pass while there is budget, and says with the next one how many it held back."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic_s = monotonic_s
        self._left = float(_AT_ONCE)
        self._counted_s = monotonic_s()
        self._held_back = 0

    def filter(self, record: logging.LogRecord) -> bool:
        now_s = self._monotonic_s()
        self._left = min(float(_AT_ONCE), self._left + (now_s - self._counted_s) / _ONE_MORE_S)
        self._counted_s = now_s
        if self._left < 1.0:
            self._held_back += 1
            return False
        self._left -= 1.0
        if self._held_back:
            record.msg, record.args = f"{record.getMessage()} ({self._held_back} other lines were left out)", ()
            self._held_back = 0
        return True
