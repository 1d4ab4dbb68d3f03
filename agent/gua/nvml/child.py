"""One sampling child as its parent sees it: a process and the socket to it."""

from __future__ import annotations

import os
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
from gua.nvml.leave_out import NOTHING, LeaveOut
from gua.nvml.progress import Position, Progress

COMMAND = (sys.executable, "-m", "gua.nvml.worker")

# A killed process is reaped in milliseconds, unless a driver call holds it in the kernel.
_REAP_S = 0.5
_GENTLE_S = 0.5
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
    """The child did not answer in time. It may be working, stopped, or held in the kernel."""


class ChildEnded(Exception):
    """The child is gone, or what it sent is no answer."""


class Child:
    """A running sampling child. `ready`: it has told that NVML is initialised, or that it cannot be.

    Raises OSError when no process can be started.
    """

    def __init__(self, command: Sequence[str], *, clock: Clock, deadline_s: float) -> None:
        self._clock, self._deadline_s = clock, deadline_s
        self._number = 0
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

    def position(self) -> Optional[Position]:
        """Which call of NVML it is in, None when in none or ended."""
        return None if self._channel.closed else self._progress.read()

    def ask(self, leave_out: LeaveOut = NOTHING) -> Snapshot:
        """The child's snapshot, taken after this call began. Raises NoAnswer at the deadline, or ChildEnded."""
        self._number += 1
        until_s = self._clock.monotonic_s() + self._deadline_s
        try:
            self._channel.send((self._number, leave_out) if leave_out else self._number)
            while self._channel.poll(max(0.0, until_s - self._clock.monotonic_s())):
                snapshot = self._receive()
                if snapshot is not None:
                    return snapshot
        except BlockingIOError as exc:
            self.ready = True  # it came as far as answering; half an answer cannot be waited for any longer
            raise NoAnswer from exc
        except _NO_MESSAGE as exc:
            raise ChildEnded(self._how_it_ended()) from exc
        raise NoAnswer

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
        self._close()
        if not self.has_ended():
            self._process.kill()
        return self._wait(_REAP_S)

    def end(self) -> bool:
        """Let it shut NVML down, kill it when it takes too long; whether it is reaped. At most one second."""
        self._close()
        return self._wait(_GENTLE_S) or self.kill()

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
        # `-m` looks in the working directory first, which may belong to anybody; the child finds what we found.
        cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path)},
    )


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    # A zero would mean no limit at all.
    return struct.pack("@ll", whole, max(1, int((seconds - whole) * 1_000_000)))
