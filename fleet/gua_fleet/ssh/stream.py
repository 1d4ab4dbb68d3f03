"""What a remote command prints, taken as it comes: never more than a window of it is held, on either side."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

from gua_fleet.errors import HostFailure
from gua_fleet.model import Outcome
from gua_fleet.probes.answer import Answer
from gua_fleet.ssh.attempt import Attempt

READ_BYTES = 64 << 10
STDERR_BYTES = 64 << 10


class ByteStream:
    """Reads like a file. taken: bytes that have come so far."""

    def __init__(self, more: Callable[[], bytes]) -> None:
        self._more = more  # gives the next bytes, none at the end
        self._held = b""
        self.taken = 0

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, and at least one before the end."""
        if not self._held:
            self._fill()
        part, self._held = self._held[:size], self._held[size:]
        return part

    def readline(self, limit: int, /) -> bytes:
        """Up to the next line feed, included; without one, up to `limit` bytes or the end."""
        while (end := self._held.find(b"\n", 0, limit)) < 0 and len(self._held) < limit and self._fill():
            pass
        size = end + 1 if end >= 0 else limit
        part, self._held = self._held[:size], self._held[size:]
        return part

    def _fill(self) -> bool:
        data = self._more()
        self.taken += len(data)
        self._held += data
        return bool(data)


Consume = Callable[[ByteStream], Any]
"""Reads what it wants of a stream. What it raises ends the command there, and passes through."""


def stream_local(attempt: Attempt, argv: Sequence[str], consume: Consume) -> Answer:
    """Run `argv` on this machine and have its output consumed; its whole process group is gone afterwards.

    Gives its exit status and what it said on stderr. Raises HostFailure: it cannot be started, the deadline passed.
    """
    from gua_fleet.ssh.local import kill_group, start_local  # the one place that starts programs here

    process = start_local(attempt, argv)
    if isinstance(process, Answer):
        return process
    if process.stdin:
        process.stdin.close()
    reader = _LocalReader(attempt, process)
    try:
        consume(ByteStream(reader.more))
        return Answer(reader.exit_status(), b"", bytes(reader.stderr))
    finally:
        kill_group(process)
        process.wait()
        reader.close()


class _LocalReader:
    """Waits on both streams of a process at once, so that neither can fill up unread."""

    def __init__(self, attempt: Attempt, process: subprocess.Popen[bytes]) -> None:
        self._attempt = attempt
        self._process = process
        self.stderr = bytearray()
        self._selector = selectors.DefaultSelector()
        for stream in (process.stdout, process.stderr):
            assert stream is not None  # for the type checker: both were asked for
            self._selector.register(stream, selectors.EVENT_READ)

    def more(self) -> bytes:
        while self._selector.get_map():
            for key, _ in self._selector.select(self._attempt.remaining_s()):
                data = os.read(key.fd, READ_BYTES)
                if not data:
                    self._selector.unregister(key.fileobj)
                if key.fileobj is self._process.stderr:
                    self.stderr += data[: STDERR_BYTES - len(self.stderr)]
                elif data:
                    return data
            if not any(key.fileobj is self._process.stdout for key in self._selector.get_map().values()):
                break
        return b""

    def exit_status(self) -> int:
        while self.more():  # what its consumer did not want
            pass
        try:
            return max(-1, self._process.wait(self._attempt.remaining_s()))
        except subprocess.TimeoutExpired:
            raise self._attempt.timeout() from None

    def close(self) -> None:
        self._selector.close()
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()


class CappedTail:
    """Takes a channel's stderr in place of the library's pipe, and keeps its beginning."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.lost = threading.Event()  # there was more than is kept

    def feed(self, data: bytes) -> None:
        room = STDERR_BYTES - len(self.data)
        self.data += data[:room]
        if len(data) > room:
            self.lost.set()

    def close(self) -> None:
        """Called by the library when no more will come."""


def read_channel(channel: Any, attempt: Attempt, stderr: CappedTail, look_every_s: float) -> bytes:
    """The next bytes of a paramiko channel; none at its end. Raises HostFailure at the deadline, or for a flood."""
    while True:
        if stderr.lost.is_set():  # what it sends there takes room in the window that nobody gives back
            raise HostFailure(Outcome.BAD_OUTPUT, "the agent says too much on stderr: stopped reading")
        channel.settimeout(min(look_every_s, attempt.remaining_s()))
        with contextlib.suppress(TimeoutError):
            return bytes(channel.recv(READ_BYTES))
