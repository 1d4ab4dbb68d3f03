"""Samples through one expendable child: asks it once a tick, and replaces it when it cannot go on.

A child is replaced when it missed its deadline, ended, met a driver-level error, or reached none of its cards (as
a library does whose driver was upgraded beneath it). There is never a second child while the first cannot be
reaped: then every sample is `unresponsive` at once, until the kernel lets it go.

A driver that comes back must be seen within two ticks, so the back-off counts ticks: a new child starts at the next
tick, except that after one younger than a second one tick is left out. At the usual intervals every tick looks
anew; at 200 ms a broken driver costs one start every other tick.

A call that hangs on one card costs all cards one sample: the next child leaves that card out (`gua.nvml.hangs`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Optional

from gua.clock import Clock
from gua.model import Fault, FaultKind, Reason, Snapshot
from gua.nvml.child import COMMAND, Child, ChildEnded, NoAnswer
from gua.nvml.hangs import FIRST_RETRY_S, HangingCards, hanging

logger = logging.getLogger(__name__)

DEADLINE_S = 10.0
# Initialising eight cards without persistence mode takes longer than a tick's deadline; killing the child each
# time would keep such a host unresponsive for ever.
START_GRACE_S = 60.0
_YOUNG_S = 1.0
_REPEAT_S = 600.0

_UNRESPONSIVE = Snapshot(unresponsive=True)


class WorkerClient:
    """The `gua.collect.Sampler` of real hosts. Not for use by several threads.

    deadline_s: longest a sample takes (plus half a second to reap a killed child); until start_grace_s after its
    start a child still initialising NVML is left to finish, and meanwhile samples are unresponsive.
    command: what to start, for tests; the number of the socket is appended, and that of the progress memory.
    hang_retry_s: how long a card is left out after a call on it did not return; doubled each time that it hangs again.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        deadline_s: float = DEADLINE_S,
        start_grace_s: float = START_GRACE_S,
        command: Optional[Sequence[str]] = None,
        hang_retry_s: float = FIRST_RETRY_S,
    ) -> None:
        self._clock, self._deadline_s, self._start_grace_s = clock, deadline_s, start_grace_s
        self._command = COMMAND if command is None else tuple(command)
        self._child: Optional[Child] = None
        self._unreaped: Optional[Child] = None
        self._last_start_s: Optional[float] = None
        self._left_out = False
        self._failure = _UNRESPONSIVE
        self._hanging = HangingCards(hang_retry_s)
        self._missing_calls: frozenset[str] = frozenset()
        self._warned_s: dict[str, float] = {}

    def sample(self) -> Snapshot:
        """All cards now; `fault` when the driver or the child failed, `unresponsive` when it did not answer."""
        if self._unreaped is not None and not self._unreaped.has_ended():
            return _UNRESPONSIVE
        self._unreaped = None
        if self._child is not None and self._child.has_ended():
            self._warn("sampling child ended between ticks pid=%d", self._child.pid)
            self._failed(_fault("WORKER_ENDED", "the sampling process ended between two ticks"))
            self._retire(self._child)
        if self._child is None and self._too_soon():
            return self._failure
        try:
            return self._ask(self._child or self._start())
        except OSError as exc:
            return self._failed(_fault("WORKER_NOT_STARTED", f"no process could be started: {exc}"))

    def close(self) -> None:
        """End the child, within two seconds. One that a driver call holds in the kernel is left behind."""
        if self._child is not None and not self._child.end():
            logger.warning("sampling child left behind, held by the driver pid=%d", self._child.pid)
            self._unreaped = self._child
        self._child = None

    def _start(self) -> Child:
        self._last_start_s = self._clock.monotonic_s()
        self._child = Child(self._command, clock=self._clock, deadline_s=self._deadline_s)
        return self._child

    def _ask(self, child: Child) -> Snapshot:
        leave_out = self._hanging.leave_out(self._clock.monotonic_s())
        try:
            snapshot = child.ask(leave_out)
        except NoAnswer:
            return self._unanswered(child)
        except ChildEnded as exc:
            self._retire(child)
            return self._failed(_fault("WORKER_ENDED", f"the sampling process ended while it was asked: {exc}"))
        self._hanging.answered(leave_out)
        self._say_missing(snapshot)
        if snapshot.fault is None and (snapshot.cards or not _reached_none(snapshot)):
            return snapshot
        self._retire(child)
        self._failure = snapshot
        return snapshot

    def _unanswered(self, child: Child) -> Snapshot:
        age_s = self._clock.monotonic_s() - child.started_s
        if child.ready or age_s >= self._start_grace_s:
            self._warn("sampling child missed its deadline pid=%d deadline_s=%.1f", child.pid, self._deadline_s)
            self._blame_card(child)
            self._retire(child)
        self._failure = _UNRESPONSIVE
        return _UNRESPONSIVE

    def _blame_card(self, child: Child) -> None:
        """Find the card that a call hangs on, so that the next child leaves it out."""
        now_s = self._clock.monotonic_s()
        position = hanging(child.position(), now_s, self._deadline_s)
        if position is None:
            return
        logger.warning("%s does not return on card %s: it is left out for a while", position.call, position.place)
        self._hanging.blame(position.place, position.call, now_s)

    def _say_missing(self, snapshot: Snapshot) -> None:
        new = frozenset(snapshot.missing_calls) - self._missing_calls
        if new:
            logger.info("this driver or nvidia-ml-py does not have %s", ", ".join(sorted(new)))
        self._missing_calls |= new

    def _retire(self, child: Child) -> None:
        self._child = None
        if not child.kill():
            logger.error("sampling child cannot be killed, the driver holds it pid=%d", child.pid)
            self._unreaped = child

    def _too_soon(self) -> bool:
        young = self._last_start_s is not None and self._clock.monotonic_s() - self._last_start_s < _YOUNG_S
        self._left_out = young and not self._left_out
        return self._left_out

    def _warn(self, message: str, *values: object) -> None:
        """Log; the same again only after a while, for a broken driver gives cause at every tick."""
        now_s = self._clock.monotonic_s()
        if now_s - self._warned_s.get(message, -_REPEAT_S) >= _REPEAT_S:
            self._warned_s[message] = now_s
            logger.warning(message, *values)

    def _failed(self, fault: Fault) -> Snapshot:
        self._failure = Snapshot(fault=fault)
        return self._failure


def _reached_none(snapshot: Snapshot) -> bool:
    """Whether cards are there and not one was reached, other than those that are left out."""
    return any(slot.reason is not Reason.UNRESPONSIVE for slot in snapshot.lost)


def _fault(error: str, message: str) -> Fault:
    return Fault(call="gua.nvml.worker", error=error, kind=FaultKind.FAILED, message=message)
