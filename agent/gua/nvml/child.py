"""One sampling child as its parent sees it: a process and the socket to it."""

from __future__ import annotations

import pickle
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Optional

from gua.clock import Clock
from gua.model import Snapshot
from gua.nvml.leave_out import LeaveOut
from gua.nvml.progress import Position, Progress
from gua.own_program import FOLDER, own_environment

COMMAND = (sys.executable, "-m", "gua.nvml.worker")

# A killed process is reaped in milliseconds, unless a driver call holds it in the kernel.
_REAP_S = 0.5
_GENTLE_S = 0.5
# After that, of the one second that a stop may take in all.
_REAP_AT_END_S = 0.25
# Of a child that has been in one call for so long, nobody expects that it comes to shutting NVML down.
_HELD_S = 1.0
# Between two looks at what it is doing.
_SHORTEST_WAIT_S = 0.01
# An answer found this long after the deadline tells that we stood still (SIGSTOP, a suspended host): the processes it
# names may be others by now.
_LATE_S = 1.0
# From the third on: what unpickling and unpacking rubbish raises.
_NO_MESSAGE = (
    EOFError,
    OSError,
    pickle.UnpicklingError,
    AttributeError,
    ImportError,
    LookupError,
    ValueError,
    TypeError,
)


class NoAnswer(Exception):
    """The child did not answer in time. It may be working, stopped, or held in the kernel.

    at: the call that it was in when it was with one card for too long; None when there is none to blame. doing: the
    call that it was in, about a card or not, when it was given up.
    """

    def __init__(self, at: Optional[Position] = None, doing: Optional[Position] = None) -> None:
        super().__init__(at, doing)
        self.at, self.doing = at, at or doing


class ChildEnded(Exception):
    """The child is gone, or what it sent is no answer."""


class Child:
    """A running sampling child. `ready`: it has told that NVML is initialised, or that it cannot be.

    Raises OSError when no process can be started.
    """

    def __init__(self, command: Sequence[str], *, clock: Clock, deadline_s: float) -> None:
        self._clock = clock
        self._number = 0
        self._stood_still_s = 0.0
        self._killed = False
        self.ready = False
        self.started_s = clock.monotonic_s()
        self._progress = Progress.create()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = _start(command, theirs.fileno(), self._progress.fd)
            except OSError:
                ours.close()
                self._progress.close()
                raise
        # A child stopped in the middle of its answer must not hold the reader: recv itself knows no time limit.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(deadline_s))
        self._channel = Connection(ours.detach())

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_ended(self) -> bool:
        """Whether the process is gone, and reaped by this."""
        return self._process.poll() is not None

    def ask(self, leave_out: LeaveOut, *, until_s: float, stall_s: float) -> Snapshot:
        """The child's snapshot, taken after this call began, without the cards of `leave_out`.

        Raises NoAnswer at `until_s` (monotonic), or once the child is with one card for `stall_s`;
        ChildEnded.
        """
        self._number += 1
        self._stood_still_s = 0.0
        try:
            self._channel.send((self._number, leave_out) if leave_out else self._number)
            while self._channel.poll(self._patience_s(until_s, stall_s)):
                snapshot = self._receive()
                if snapshot is not None:
                    return snapshot
        except BlockingIOError as exc:
            self.ready = True  # it came as far as answering; half an answer cannot be waited for any longer
            raise NoAnswer from exc
        except _NO_MESSAGE as exc:
            raise ChildEnded(self._how_it_ended()) from exc
        # A card that it came to late in the sample only is the last: then the host is slow, and no card hangs
        raise NoAnswer(self._stalled(stall_s / 2), self._progress.read())

    def _patience_s(self, until_s: float, stall_s: float) -> float:
        """Let time pass until there is something to receive or to give up; then 0. Raises NoAnswer when it is late."""
        while True:
            began_s = self._clock.monotonic_s()
            if began_s >= until_s or self._stalled(stall_s) is not None:
                return 0.0
            # No longer than until it has stalled where it is: what is waited beyond that, its successors lack
            wait_s = min(
                until_s - began_s,
                stall_s / 4,
                max(stall_s - self._with_card_s(self._progress.read()), _SHORTEST_WAIT_S),
            )
            arrived = self._channel.poll(wait_s)
            now_s = self._clock.monotonic_s()
            if now_s > until_s + _LATE_S:
                raise NoAnswer
            if arrived:
                return 0.0
            self._stood_still_s += now_s - began_s - wait_s

    def _stalled(self, stall_s: float) -> Optional[Position]:
        """The call that it is in, if it is with one card for so long, not counting when we stood still.

        What stops a service (a freezer, a suspended virtual machine) stops both, and no card is to blame.
        """
        position = self._progress.read()
        return position if self._with_card_s(position) >= stall_s else None

    def _with_card_s(self, position: Optional[Position]) -> float:
        """How long it has been with the card that it is with; 0 when it is with none."""
        if position is None or not position.place:
            return 0.0
        return self._clock.monotonic_s() - position.place_since_s - self._stood_still_s

    def _receive(self) -> Optional[Snapshot]:
        """One message; None when it is not the answer: word that NVML is up, or what came too late last time."""
        message = self._channel.recv()
        if message is None:
            self.ready = True
            return None
        number, snapshot = message
        return snapshot if number == self._number and isinstance(snapshot, Snapshot) else None

    def _how_it_ended(self) -> str:
        self.kill()
        status = self._process.returncode
        if status is None:
            return "it cannot be reaped"
        return f"killed by signal {-status}" if status < 0 else f"exit status {status}"

    def kill(self) -> bool:
        """Kill and reap it; whether that worked. Not, while a driver call holds it: try `has_ended` again later."""
        return self._kill(_REAP_S)

    def _kill(self, reap_s: float) -> bool:
        self._close()
        self._killed = True
        if not self.has_ended():
            self._process.kill()
        return self._wait(reap_s)

    def end(self) -> bool:
        """Let it shut NVML down, kill it when it takes too long, or is held in a call; whether it is reaped.

        At most three quarters of a second, also of one whose killing was interrupted.
        """
        gentle = not self._killed and not self._is_held()
        self._close()
        return (gentle and self._wait(_GENTLE_S)) or self._kill(_REAP_AT_END_S)

    def _is_held(self) -> bool:
        position = None if self._channel.closed else self._progress.read()
        return position is not None and self._clock.monotonic_s() - position.since_s >= _HELD_S

    def _close(self) -> None:
        if not self._channel.closed:
            self._channel.close()
            self._progress.close()

    def _wait(self, timeout_s: float) -> bool:
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True


def _start(command: Sequence[str], *fds: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*command, *map(str, fds)],
        pass_fds=fds,
        # Nothing but the socket is a channel: what the driver's library prints goes nowhere.
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=FOLDER,
        env=own_environment(),
    )


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    # A zero would mean no limit at all.
    return struct.pack("@ll", whole, max(1, int((seconds - whole) * 1_000_000)))
