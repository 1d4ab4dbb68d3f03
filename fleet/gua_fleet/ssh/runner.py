"""Fabric's seams, filled for a sweep: one shared configuration, and a runner that costs no threads."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import fabric  # type: ignore[import-untyped]  # it has no type hints
import paramiko
from fabric.runners import Remote  # type: ignore[import-untyped]  # it has no type hints

from gua_fleet.errors import HostFailure
from gua_fleet.model import Outcome
from gua_fleet.probes.answer import Answer
from gua_fleet.probes.remote_command import command_line, ending_argv
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.stream import ByteStream, CappedTail, Consume, read_channel

# Beyond the caps of both streams, so that the window is never what stops a command.
_SLACK_BYTES = 1 << 20
# How often a wait looks whether the attempt was given up meanwhile.
_LOOK_EVERY_S = 0.5
_GOODBYE_S = 1.0
# What the library has for an exit status before there is one.
_NO_STATUS = -1
# What a stream may have on the way: enough for a long fat network, and little for a hundred hosts at once.
_STREAM_WINDOW_BYTES = 1 << 20


class FleetConnection(fabric.Connection):  # type: ignore[misc]  # fabric has no type hints
    """A Fabric connection that shares one configuration safely.

    Fabric writes attributes that it does not know into the Config, which loses hosts when threads meet in a shared one
    (20 of 100; 0 of 9,650 this way), and looks through all names of the class for each. Here attributes are attributes.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class SharedConfig(fabric.Config):  # type: ignore[misc]  # fabric has no type hints
    """Fabric's defaults alone. Its own class is asked for these two at every look at a group of settings, and makes an
    error message of all its names each time it has to say that it is the root.
    """

    _keypath: tuple[str, ...] = ()

    @property
    def _root(self) -> SharedConfig:
        return self


class NoSshConfig(paramiko.SSHConfig):
    """An ssh_config that says nothing: the target was worked out before. Asking the library costs a third of making a
    connection (0.2 ms: host name, user and address tokens) for no answer.
    """

    def lookup(self, hostname: str) -> paramiko.SSHConfigDict:
        return paramiko.SSHConfigDict({"hostname": hostname})


class Course:
    """How far a command has come, told by the library's thread through what stands in for events of its channel.

    The library has whoever runs a command wait for the server's word on it, for the end of its output and for its exit
    status, and wakes it each time. Here it waits once, for `over`: everything has come, or nothing more will.
    """

    def __init__(self, channel: paramiko.Channel, attempt: Attempt) -> None:
        self.over = threading.Event()
        self._channel = channel
        self._attempt = attempt

    @property
    def accepted(self) -> bool:
        """Whether the server said that it runs the command."""
        return self._channel.event_ready

    def set(self) -> None:
        """Called by the library when one of its events happened: look which."""
        if self.accepted:
            self._attempt.stage = "output"
        whole = self._channel.eof_received and self._channel.exit_status != _NO_STATUS
        if whole or self._channel.closed:
            self.over.set()


class Output:
    """What a command prints on one stream, collected by the library's thread in place of its own pipe.

    That one wakes whoever reads at every packet. Nothing needs to be read meanwhile: the window is as large as both
    caps.
    """

    def __init__(self, cap_bytes: int, course: Course) -> None:
        self._parts: list[bytes] = []
        self._size_bytes = 0
        self._cap_bytes = cap_bytes
        self._course = course

    def take(self) -> bytes:
        """All of it so far, and no more of it is kept here: the library holds on to this for long after the answer.

        Joined only here: appending to what is there would copy it again and again.
        """
        parts, self._parts = self._parts, []
        return b"".join(parts)

    @property
    def capped(self) -> bool:
        return self._size_bytes > self._cap_bytes

    def feed(self, data: bytes) -> None:
        """Called by the library with the next bytes. Those behind the cap are dropped."""
        if not self.capped:
            self._parts.append(data)
            self._size_bytes += len(data)
        if self.capped:
            self._course.over.set()

    def close(self) -> None:
        """Called by the library when no more will come: at the stream's end, or with the channel or the connection."""
        self._course.set()


class AnswerRunner(Remote):  # type: ignore[misc]  # fabric has no type hints
    """Runs one command and takes its answer: no helper threads, no pty, a cap.

    Used without `Connection.run`, which works out anew each time which of its arguments is which.
    """

    def run(self, command: str, **kwargs: Any) -> Answer:
        """kwargs: attempt (an Attempt, told how far it is), cap_bytes (of each of the two streams) and stdin (bytes for
        the command to read, few enough for one window).
        """
        attempt: Attempt = kwargs["attempt"]
        attempt.stage = "open"
        self._open_channel(attempt, kwargs["cap_bytes"])
        attempt.stage = "exec"
        self._request("exec", command, answered=True)
        with contextlib.suppress(OSError):  # it may be over already, and did not want it: what it said is the answer
            self.channel.sendall(kwargs["stdin"])
        self.channel.shutdown_write()  # whatever reads its input there, an rc file or a forced command, finds none
        try:
            return self._answer(attempt)
        except HostFailure:
            self._end_command()
            if attempt.cancelled:
                self._end_by_name(command)
            raise

    def _open_channel(self, attempt: Attempt, cap_bytes: int) -> None:
        transport: paramiko.Transport = self.context.transport
        self.channel = transport.open_session(window_size=2 * cap_bytes + _SLACK_BYTES)
        self._course = Course(self.channel, attempt)
        self._stdout, self._stderr = (Output(cap_bytes, self._course) for _ in range(2))
        # nothing can have come for them yet: no command runs
        self.channel.in_buffer, self.channel.in_stderr_buffer = self._stdout, self._stderr  # type: ignore[assignment]
        self.channel.event = self.channel.status_event = self._course  # type: ignore[assignment]
        self._course.set()  # but the connection may have been lost meanwhile

    def _request(self, kind: str, words: str, *, answered: bool) -> None:
        """Ask the server something about the channel. answered: it is to say whether it does that."""
        message = paramiko.Message()
        message.add_byte(paramiko.common.cMSG_CHANNEL_REQUEST)
        message.add_int(self.channel.remote_chanid)
        message.add_string(kind)
        message.add_boolean(answered)
        message.add_string(words)
        self.context.transport._send_user_message(message)

    def _end_command(self) -> None:
        """Ask the server to end the command, which it would not by itself when we go. Most do; `timeout` there ends it
        in any case.
        """
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._request("signal", "TERM", answered=False)

    def _end_by_name(self, command: str) -> None:
        """The same where the server passes no signal on (to root, mostly): by the nonce, which no other process has.

        For an interrupted sweep only: past a deadline the server may be stuck, and `timeout` there is at work already.
        """
        argv = ending_argv(command)
        if argv is None:
            return
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            channel = self.context.transport.open_session(timeout=_GOODBYE_S)
            channel.exec_command(command_line(argv))
            channel.status_event.wait(_GOODBYE_S)

    def _answer(self, attempt: Attempt) -> Answer:
        _wait(self._course.over, attempt)
        if self._stdout.capped or self._stderr.capped:
            with contextlib.suppress(OSError, EOFError):
                self.channel.close()
            return Answer(-1, self._stdout.take(), self._stderr.take(), capped=True)
        if not self._course.accepted:
            raise self.context.transport.get_exception() or paramiko.SSHException("Channel closed.")
        return Answer(self._exit_status(), self._stdout.take(), self._stderr.take())

    def _exit_status(self) -> int:
        """-1 when the server says nothing, as for a command that a signal ended, and still ends the stream in order."""
        status = self.channel.exit_status
        if status == _NO_STATUS and not (self.channel.eof_received and self.context.transport.is_active()):
            raise HostFailure(Outcome.UNREACHABLE, "the connection was lost before the answer was complete")
        return status


class StreamRunner(AnswerRunner):
    """Runs one command and has its output consumed while it comes."""

    def run(self, command: str, **kwargs: Any) -> Answer:
        """kwargs: attempt and consume. The answer has the exit status and stderr; stdout was consumed."""
        attempt: Attempt = kwargs["attempt"]
        consume: Consume = kwargs["consume"]
        stderr = CappedTail()
        attempt.stage = "open"
        self.channel = self.context.transport.open_session(window_size=_STREAM_WINDOW_BYTES)
        self.channel.in_stderr_buffer = stderr  # type: ignore[assignment]
        attempt.stage = "exec"
        self.channel.exec_command(command)
        self.channel.shutdown_write()
        attempt.stage = "output"
        try:
            stream = ByteStream(lambda: read_channel(self.channel, attempt, stderr, _LOOK_EVERY_S))
            consume(stream)
            while stream.read(_STREAM_WINDOW_BYTES):  # what its consumer did not want
                pass
            _wait(self.channel.status_event, attempt)
            return Answer(self._exit_status(), b"", bytes(stderr.data))
        except BaseException:
            self._end_command()
            if attempt.cancelled:
                self._end_by_name(command)
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                self.channel.close()
            raise


def _wait(event: threading.Event, attempt: Attempt) -> None:
    """Return when the event is set. Raises HostFailure at the attempt's deadline, and soon after it was given up."""
    while not event.wait(min(_LOOK_EVERY_S, attempt.remaining_s())):
        pass
    attempt.remaining_s()
