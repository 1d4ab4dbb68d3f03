"""The only door to time. Everything that needs "now" takes a `Clock`, so tests never wait."""

from __future__ import annotations

import os
import time
from typing import Protocol

# 2020-01-01 UTC, before there was a gua. A clock that says less was never set (a dead RTC says 1970 or 2000).
SET_CLOCK_MS = 1_577_836_800_000


class Clock(Protocol):
    """Wall time, monotonic time, and waiting.

    Invariants: `monotonic_s` never goes back and is not comparable between processes;
    `monotonic_s` stands still while the machine is suspended, which `suspended_s` counts since the boot;
    `now_ms` is Unix time in UTC milliseconds and may jump either way when an administrator or NTP sets it.
    """

    def now_ms(self) -> int: ...

    def monotonic_s(self) -> float: ...

    def suspended_s(self) -> float: ...

    def sleep_s(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    def suspended_s(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)

    def sleep_s(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))


def process_age_s() -> float:
    """How long this process has been running: what a promise of a time to its caller is counted from."""
    try:
        with open("/proc/self/stat", "rb") as file:
            started_ticks = int(file.read().rpartition(b")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started_ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, LookupError, ValueError):
        return 0.0
