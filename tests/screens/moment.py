"""When screens are made, and where for."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
# A Monday morning, so that the week is whole.
NOW_MS = 1_772_438_400_000  # 2026-03-02T08:00:00Z
SINCE_MS = NOW_MS - 7 * 86_400_000


class StandingClock:
    """It is always the same moment."""

    def now_ms(self) -> int:
        return NOW_MS

    def monotonic_s(self) -> float:
        return 0.0

    def sleep_s(self, seconds: float) -> None:
        raise AssertionError("nothing on a screen waits")
