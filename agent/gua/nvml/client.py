"""Samples through one expendable child: asks it once a tick, and replaces it when it cannot go on.

A child is replaced when it missed its deadline, ended, met a driver-level error, or reached none of its cards (as
a library does whose driver was upgraded beneath it). There is never a second child while the first cannot be
reaped: then every sample is `unresponsive` at once, until the kernel lets it go.

A child that is with one card for half the deadline, in one call or in many slow ones, is replaced too, and in the other
half its successor reads the rest; where that one hangs in another card, it is given a third of what is left, and so on.
Cards that hang cost no other card its tick (see `gua.nvml.isolation`).

A child that has sampled before and cannot go on is replaced within the same tick: a reloaded driver costs none. A
driver that comes back must be seen within two ticks, so the back-off counts ticks: a new child starts at the next
tick, except that after one younger than a second one tick is left out. At the usual intervals every tick looks
anew; at 200 ms a broken driver costs one start every other tick.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Optional

from gua.clock import Clock
from gua.model import READING_UTIL_SAMPLES, SAMPLES_CONTRADICTED, Fault, FaultKind, Reason, Snapshot
from gua.nvml.child import COMMAND, Child, ChildEnded, NoAnswer
from gua.nvml.isolation import Isolation, successor_stall_s
from gua.nvml.leave_out import LeaveOut
from gua.nvml.progress import Position

logger = logging.getLogger(__name__)

DEADLINE_S = 10.0
# Initialising eight cards without persistence mode takes longer than a tick's deadline; killing the child each
# time would keep such a host unresponsive for ever.
START_GRACE_S = 60.0
_YOUNG_S = 1.0
_REPEAT_S = 600.0


class WorkerClient:
    """The `gua.collect.Sampler` of real hosts. Not for use by several threads.

    deadline_s: longest a sample takes (plus a second to reap killed children); until start_grace_s after its
    start a child still initialising NVML is left to finish, and meanwhile samples are unresponsive.
    command: what to start, for tests; the number of the socket is appended, and that of the progress memory.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        deadline_s: float = DEADLINE_S,
        start_grace_s: float = START_GRACE_S,
        command: Optional[Sequence[str]] = None,
    ) -> None:
        self._clock, self._deadline_s, self._start_grace_s = clock, deadline_s, start_grace_s
        self._command = COMMAND if command is None else tuple(command)
        self._child: Optional[Child] = None
        self._unreaped: Optional[Child] = None
        self._last_start_s: Optional[float] = None
        self._tick_left_out = False
        self._isolation = Isolation()
        self._missing_calls: frozenset[str] = frozenset()
        self._contradicted: set[str] = set()
        self._failure = _no_answer(None)
        self._warned_s: dict[str, float] = {}

    def sample(self) -> Snapshot:
        """All cards now; `fault` when the driver or the child failed, `unresponsive` when it did not answer."""
        if self._unreaped is not None and not self._unreaped.has_ended():
            return self._failure if self._failure.unresponsive else _no_answer(None)
        self._unreaped = None
        if self._child is not None and self._child.has_ended():
            self._warn("the sampling child ended between two ticks")
            self._failed(_fault("WORKER_ENDED", "the sampling process ended between two ticks"))
            self._retire(self._child)
        if self._child is None and self._too_soon():
            return self._failure
        until_s, running = self._clock.monotonic_s() + self._deadline_s, self._child
        try:
            snapshot = self._sample_by(running or self._start(), until_s)
            if running is not None and self._may_try_anew(snapshot, until_s):
                snapshot = self._sample_by(self._start(), until_s)
            return snapshot
        except OSError as exc:
            return self._failed(_fault("WORKER_NOT_STARTED", f"no process could be started: {exc}"))

    def close(self) -> bool:
        """End the child, within two seconds; whether nothing holds the driver any more.

        A child that a driver call holds in the kernel is left behind; ask again later.
        """
        if self._unreaped is not None and self._unreaped.has_ended():
            self._unreaped = None
        if self._child is not None and not self._child.end():
            self._unreaped = self._child
        self._child = None
        if self._unreaped is not None:
            self._warn(f"sampling child left behind, held by the driver pid={self._unreaped.pid}")
        return self._unreaped is None

    def _start(self) -> Child:
        self._last_start_s = self._clock.monotonic_s()
        self._child = Child(self._command, clock=self._clock, deadline_s=self._deadline_s)
        return self._child

    def _may_try_anew(self, snapshot: Snapshot, until_s: float) -> bool:
        """Whether the child is gone, for what one that begins now may not meet: a reloaded driver, a kill."""
        gone = self._child is None and self._unreaped is None and not snapshot.unresponsive
        return gone and until_s - self._clock.monotonic_s() > self._deadline_s / 2

    def _sample_by(self, child: Child, until_s: float) -> Snapshot:
        """An answer of this child; of a new one without the card that it hangs in, and so on until the deadline."""
        leave_out = self._isolation.left_out(self._clock.monotonic_s())
        stall_s = self._deadline_s / 2
        at: Optional[Position] = None
        while True:
            try:
                return self._ask(child, leave_out, until_s, stall_s)
            except NoAnswer as exc:
                if exc.at is None:
                    return self._unanswered(child, at or exc.doing)
                at = exc.at
            self._blame(at)
            if self._clock.monotonic_s() >= until_s:
                return self._unanswered(child, at)
            self._retire(child)
            if self._unreaped is not None:
                return self._failed(_no_answer(at))
            leave_out = {**leave_out, at.place: at.call}
            stall_s = successor_stall_s(until_s - self._clock.monotonic_s())
            child = self._start()

    def _blame(self, at: Position) -> None:
        self._isolation.hung(at.place, at.call, self._clock.monotonic_s())
        self._warn(f"{at.call} does not return in time on card {at.place}: the card is left out for now")

    def _ask(self, child: Child, leave_out: LeaveOut, until_s: float, stall_s: float) -> Snapshot:
        """One answer. Raises NoAnswer."""
        try:
            snapshot = child.ask(leave_out, until_s=until_s, stall_s=stall_s)
        except ChildEnded as exc:
            self._retire(child)
            return self._failed(_fault("WORKER_ENDED", f"the sampling process ended while it was asked: {exc}"))
        self._say_once(snapshot)
        hung = _only_hung(snapshot)
        if hung is not None:
            self._isolation.forget()
            return self._failed(_no_answer(hung))
        if snapshot.fault is None and (snapshot.cards or not snapshot.lost):
            self._isolation.answered(leave_out)
            return snapshot
        self._isolation.forget()
        self._retire(child)
        return self._failed(snapshot)

    def _say_once(self, snapshot: Snapshot) -> None:
        """What this driver does not have, and whose samples are not believed."""
        new = frozenset(snapshot.missing_calls) - self._missing_calls
        if new:
            logger.info("this driver or nvidia-ml-py does not have %s", ", ".join(sorted(new)))
        self._missing_calls |= new
        for card in snapshot.cards:
            fault = card.faults.get(READING_UTIL_SAMPLES)
            if fault is not None and fault.error == SAMPLES_CONTRADICTED and card.uuid not in self._contradicted:
                self._contradicted.add(card.uuid)
                logger.warning("card %s: %s is not believed: %s", card.uuid, fault.call, fault.message)

    def _unanswered(self, child: Child, doing: Optional[Position]) -> Snapshot:
        age_s = self._clock.monotonic_s() - child.started_s
        if child.ready or age_s >= self._start_grace_s:
            self._warn(f"sampling child missed its deadline of {self._deadline_s:g} s")
            self._retire(child)
        return self._failed(_no_answer(doing))

    def _retire(self, child: Child) -> None:
        reaped = child.kill()  # a stop that comes in the middle of it leaves the child to `close`
        self._child = None
        if not reaped:
            logger.error("sampling child cannot be killed, the driver holds it pid=%d", child.pid)
            self._unreaped = child

    def _too_soon(self) -> bool:
        young = self._last_start_s is not None and self._clock.monotonic_s() - self._last_start_s < _YOUNG_S
        self._tick_left_out = young and not self._tick_left_out
        return self._tick_left_out

    def _warn(self, message: str) -> None:
        """Log; the same again only after a while, for a broken driver gives cause at every tick."""
        now_s = self._clock.monotonic_s()
        if now_s - self._warned_s.get(message, -_REPEAT_S) >= _REPEAT_S:
            self._warned_s[message] = now_s
            logger.warning("%s", message)

    def _failed(self, failure: Snapshot) -> Snapshot:
        """What this sample says, and those of the ticks left out after it."""
        self._failure = failure
        return failure


def _fault(error: str, message: str) -> Snapshot:
    return Snapshot(fault=Fault(call="gua.nvml.worker", error=error, kind=FaultKind.FAILED, message=message))


def _no_answer(at: Optional[Position]) -> Snapshot:
    """at: the call that was waited for, where that is known."""
    if at is None:
        fault = Fault("gua.nvml.worker", "NO_ANSWER", FaultKind.FAILED, "the sampling process does not answer")
    else:
        where = f" on card {at.place}" if at.place else ""
        fault = Fault(at.call, "NO_ANSWER", FaultKind.FAILED, f"{at.call} does not return in time{where}")
    return Snapshot(fault=fault, unresponsive=True)


def _only_hung(snapshot: Snapshot) -> Optional[Position]:
    """The first of the cards left out, if there is no other card: then the driver as a whole does not answer."""
    if snapshot.cards or any(slot.reason is not Reason.UNRESPONSIVE for slot in snapshot.lost):
        return None
    first = next(iter(snapshot.lost), None)
    return None if first is None else Position(first.uuid or f"index {first.index}", first.fault.call)
