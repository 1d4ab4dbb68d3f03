"""When the next tick is due. Pure: deadlines on a grid from the start, so that work never adds up to drift."""

from __future__ import annotations


class Schedule:
    """Deadlines `start_s + n * interval_s` on the monotonic clock; the first is the start itself.

    A deadline that passed while a tick was still at work is skipped, never caught up on.
    """

    def __init__(self, start_s: float, interval_s: float) -> None:
        self._start_s = start_s
        self._interval_s = interval_s
        self._number = 0
        self.skipped = 0  # deadlines so far

    @property
    def deadline_s(self) -> float:
        """When the tick under way was due."""
        return self._start_s + self._number * self._interval_s

    def changed(self, now_s: float, interval_s: float) -> Schedule:
        """The schedule under another interval, from the tick before on. What is due under either comes no later."""
        before_s = self.deadline_s - self._interval_s
        return Schedule(min(self.deadline_s, max(now_s, before_s + interval_s)), interval_s)

    def advance(self, now_s: float) -> float:
        """The next deadline, the first one after `now_s` and after the one before it."""
        passed = int((now_s - self._start_s) // self._interval_s)
        # max: a wait may end a hair early, and must not give the same deadline twice
        following = max(self._number + 1, passed + 1)
        self.skipped += following - self._number - 1
        self._number = following
        return self.deadline_s
