"""One host's attempt: its deadline, how far it got, and how to end it from outside."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from gua_fleet.errors import HostFailure
from gua_fleet.model import Host, Outcome, Stage

_WHERE: dict[Stage, str] = {
    "connect": "no SSH conversation came about",
    "auth": "the log-in was not answered",
    "open": "no session was opened",
    "exec": "the command was not accepted",
    "output": "the command did not finish",
}


class Attempt:
    """Shared by the thread that talks to the host and the sweep that watches the clock.

    Invariant: a canceller registered at any time is called exactly once if the attempt is ever cancelled, and no
    canceller blocks. Monotonic seconds throughout.
    """

    def __init__(self, host: Host, timeout_s: float) -> None:
        self.host = host
        self.timeout_s = timeout_s
        self.started_s = time.monotonic()
        self.deadline_s = self.started_s + timeout_s
        self.last_s = self.deadline_s  # no deadline is put off beyond it
        self.stage: Stage = "connect"
        self.closed = threading.Event()  # set by whoever called `close`, when it is through
        self._cancellers: list[Callable[[], object]] = []
        self._cancelled = False
        self._closing = contextlib.ExitStack()
        self._lock = threading.Lock()

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s

    def remaining_s(self) -> float:
        """Seconds until the deadline. Raises HostFailure (timeout at this stage) when none is left."""
        left = self.deadline_s - time.monotonic()
        if left <= 0 or self._cancelled:
            raise self.timeout()
        return left

    def put_off(self, limit_s: float) -> None:
        """Something came: the deadline is `limit_s` from now, and never beyond `last_s`."""
        self.deadline_s = min(self.last_s, time.monotonic() + limit_s)

    @contextlib.contextmanager
    def own_work(self, limit_s: float) -> Iterator[None]:
        """Within it this side works, or waits for its turn: that is nobody's delay, and takes nothing of its time.

        limit_s: the most that it may take. Afterwards the other side has `timeout_s` to go on.
        """
        begun_s = time.monotonic()
        self.deadline_s = begun_s + limit_s
        try:
            yield
        finally:
            self.last_s += time.monotonic() - begun_s
            self.put_off(self.timeout_s)

    def on_cancel(self, canceller: Callable[[], object]) -> None:
        """Have `canceller` called when the attempt is cancelled; at once when it already was."""
        with self._lock:
            if not self._cancelled:
                self._cancellers.append(canceller)
                return
        canceller()

    def give_up(self) -> None:
        """Tell the attempt's own thread to end it at its next look at the clock, politely to the other side."""
        self._cancelled = True

    def cancel(self) -> None:
        """End the attempt from outside. Never blocks; the attempt's own thread does the tidying up."""
        with self._lock:
            cancellers, self._cancellers, self._cancelled = self._cancellers, [], True
        for canceller in cancellers:
            canceller()

    def on_close(self, closer: Callable[[], object]) -> None:
        """Have `closer` called by `close`, the last one first. A closer may block; it is not called by `cancel`."""
        self._closing.callback(closer)

    def hand_over(self) -> contextlib.ExitStack:
        """What `close` would have freed, for somebody who keeps the connection."""
        with self._lock:
            self._cancellers = []
        return self._closing.pop_all()

    def close(self) -> None:
        """Free what the attempt holds: for its own thread, once the result is handed over."""
        self._closing.close()

    def timeout(self) -> HostFailure:
        """The failure to raise or record once time is up."""
        if self.last_s > self.started_s + self.timeout_s and self.stage == "output":
            if time.monotonic() >= self.last_s:
                return HostFailure(Outcome.TIMEOUT, f"not done within {self.last_s - self.started_s:.3g} s", self.stage)
            return HostFailure(Outcome.TIMEOUT, f"nothing more came within {self.timeout_s:.3g} s", self.stage)
        # a connection has less time than the whole, so it may end well before the deadline
        waited_s = self.elapsed_s() if self.elapsed_s() < 0.9 * self.timeout_s else self.timeout_s
        return HostFailure(Outcome.TIMEOUT, f"{_WHERE[self.stage]} within {waited_s:.3g} s", self.stage)
