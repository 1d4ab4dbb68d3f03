"""What happened to the machine's clocks between two looks: a suspension, somebody who set the time."""

from __future__ import annotations

from gua.clock import Clock

# Below these it is the reading of two clocks one after the other, or a clock that is slowly put right.
_LEAST_SUSPENDED_S = 1.0
_LEAST_SET_MS = 2_000


class ClockWatch:
    """Compares the three clocks: wall time, monotonic time, and how long the machine was suspended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._suspended_s = clock.suspended_s()
        self._offset_ms = self._read_offset_ms()

    def suspended_s(self) -> float:
        """How long the machine was suspended since this was asked last; 0.0 when it was not."""
        total_s = self._clock.suspended_s()
        new_s = total_s - self._suspended_s
        if new_s < _LEAST_SUSPENDED_S:
            return 0.0
        self._suspended_s = total_s
        return new_s

    def set_by_ms(self) -> int:
        """How far the wall clock was set since this was asked last, negative: back; 0 when nobody set it."""
        offset_ms = self._read_offset_ms()
        by_ms, self._offset_ms = offset_ms - self._offset_ms, offset_ms
        return by_ms if abs(by_ms) >= _LEAST_SET_MS else 0

    def _read_offset_ms(self) -> int:
        running_s = self._clock.monotonic_s() + self._clock.suspended_s()
        return self._clock.now_ms() - round(running_s * 1000)
