"""Hand-written fakes of our own protocols."""

from __future__ import annotations


class FakeClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self, now_ms: int = 1_767_225_600_000) -> None:
        self._begin_ms = now_ms
        self.elapsed_s = 0.0

    def now_ms(self) -> int:
        return self._begin_ms + round(self.elapsed_s * 1000)

    def monotonic_s(self) -> float:
        return 1000.0 + self.elapsed_s

    def sleep_s(self, seconds: float) -> None:
        self.elapsed_s += seconds
