"""The only door to time. Everything that needs "now" takes a `Clock`, so tests never wait."""

from __future__ import annotations

import time
from typing import Protocol

# 2020-01-01 UTC, before there was a gua. A clock that says less was never set (a dead RTC says 1970 or 2000).
SET_CLOCK_MS = 1_577_836_800_000


class Clock(Protocol):
    """Wall time, monotonic time, and waiting.

    Invariants: `monotonic_s` never goes back and is not comparable between processes;
    `now_ms` is Unix time in UTC milliseconds and may jump either way when an administrator or NTP sets it.
    """

    def now_ms(self) -> int: ...

    def monotonic_s(self) -> float: ...

    def sleep_s(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    def sleep_s(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))
