"""Hand-written fakes of our own protocols."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional, Union

from gua.daemon.pause import PauseRequest
from gua.model import KnownDevice, Tick, TickStatus
from gua.rulebook import RuleBook


class FakeClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self, now_ms: int = 1_767_225_600_000) -> None:
        self._begin_ms = now_ms
        self.elapsed_s = 0.0
        self.asleep_s = 0.0

    def now_ms(self) -> int:
        return self._begin_ms + round(self.elapsed_s * 1000)

    def monotonic_s(self) -> float:
        return 1000.0 + self.elapsed_s

    def suspend(self, seconds: float) -> None:
        """The machine sleeps: the wall clock goes on, the monotonic one does not."""
        self.asleep_s += seconds
        self._begin_ms += round(seconds * 1000)

    def set(self, by_ms: int) -> None:
        """Somebody sets the wall clock."""
        self._begin_ms += by_ms

    def suspended_s(self) -> float:
        return self.asleep_s

    def sleep_s(self, seconds: float) -> None:
        self.elapsed_s += seconds


class FakeStop:
    """Waits on a fake clock, and stops at `until_s` of its time."""

    def __init__(self, clock: FakeClock, until_s: float) -> None:
        self._clock = clock
        self._until_s = until_s

    @property
    def requested(self) -> bool:
        return self._clock.elapsed_s >= self._until_s

    def wait(self, seconds: float) -> bool:
        self._clock.sleep_s(seconds)
        return self.requested

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        yield


class ScriptedSource:
    """Gives the ticks of a script, or raises what stands there; each takes `work_s` of a fake clock's time."""

    def __init__(self, clock: FakeClock, script: Iterable[Union[TickStatus, Exception]], work_s: float = 0.0) -> None:
        self._clock = clock
        self._script = iter(script)
        self.work_s = work_s
        self.begun_s: list[float] = []
        self.closed, self.lets_go = False, True

    def collect(self, *, ts_ms: int, cover_ms: int, known: Sequence[KnownDevice]) -> Tick:
        self.begun_s.append(self._clock.elapsed_s)
        self._clock.sleep_s(self.work_s)
        step = next(self._script)
        if isinstance(step, Exception):
            raise step
        return Tick(ts_ms, step, cover_ms, cards=())

    def judge_by(self, rules: RuleBook) -> None:
        raise AssertionError("no rule changes here")

    def close(self) -> bool:
        self.closed = True
        return self.lets_go


class ListWriter:
    """Keeps ticks and pauses in lists; raises the next of `failures` instead of a tick, where there is one."""

    def __init__(self, failures: Iterable[Optional[Exception]] = ()) -> None:
        self.ticks: list[Tick] = []
        self.pauses: list[tuple[str, int]] = []
        self._failures = iter(failures)

    def known_devices(self) -> tuple[KnownDevice, ...]:
        return ()

    def write_tick(self, tick: Tick) -> None:
        failure = next(self._failures, None)
        if failure is not None:
            raise failure
        self.ticks.append(tick)

    def begin_pause(self, now_ms: int, until_ms: Optional[int]) -> None:
        self.pauses.append(("begin", now_ms))

    def end_pause(self, now_ms: int) -> None:
        self.pauses.append(("end", now_ms))


class FakeGate:
    """A gate at which a pause stands in the given stretches (from, until) of a fake clock's seconds."""

    def __init__(self, clock: FakeClock, *stretches: tuple[float, float]) -> None:
        self._clock = clock
        self._stretches = stretches
        self.held = False

    def enter(self) -> Optional[PauseRequest]:
        self.held = True
        return self.look()

    def look(self) -> Optional[PauseRequest]:
        standing = any(begin <= self._clock.elapsed_s < end for begin, end in self._stretches)
        return PauseRequest(0, None, "alice") if standing else None

    def leave(self) -> None:
        self.held = False


class FakeBus:
    """A bus with these troubles."""

    def __init__(self, *, no_gpu: bool = False, troubles: frozenset[str] = frozenset()) -> None:
        self._no_gpu, self._troubles = no_gpu, troubles

    def has_no_gpu(self) -> bool:
        return self._no_gpu

    def troubles(self, tick: Tick) -> frozenset[str]:
        return self._troubles
