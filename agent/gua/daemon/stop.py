"""Being told to stop, by SIGTERM or SIGINT, in the middle of a wait or of a sample; and to reload, by SIGHUP."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Optional, Protocol


class StopRequested(BaseException):
    """Raised inside a sample that a signal ended. Not an Exception: no guard may take it for a failed tick."""


class Stop(Protocol):
    """What the tick loop asks. `wait` is the only place where it lets time pass."""

    @property
    def requested(self) -> bool: ...

    def wait(self, seconds: float) -> bool:
        """Let `seconds` pass; True as soon as a stop was requested."""
        ...

    def interruptible(self) -> contextlib.AbstractContextManager[None]:
        """A stretch in which a stop request raises StopRequested at once."""
        ...


class SignalStop:
    """Stop by signal. Made in the main thread, for the life of the process; a second signal changes nothing.

    reload_requested: SIGHUP came. On a terminal that means that the terminal is gone, so there it stops; unless whoever
    started it had that signal ignored, as `nohup` does.
    """

    def __init__(self) -> None:
        self.requested = False
        self.reload_requested = False
        self._interruptible = False
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._write_fd, False)
        # Something to read there ends a wait. Python itself writes it, at once: our handlers run only after a wait that
        # the signal came too early to interrupt, and Python repeats a select that it did interrupt.
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)
        ends_with_terminal = _has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
        signal.signal(signal.SIGHUP, self._handle if ends_with_terminal else self._handle_reload)

    def _handle(self, number: int, frame: Optional[FrameType]) -> None:
        first, self.requested = not self.requested, True
        if first and self._interruptible:
            raise StopRequested

    def _handle_reload(self, number: int, frame: Optional[FrameType]) -> None:
        self.reload_requested = True

    def wait(self, seconds: float) -> bool:
        if not self.requested and select.select([self._read_fd], [], [], max(0.0, seconds))[0]:
            os.read(self._read_fd, 64)  # or the next wait would end at once
        return self.requested

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        self._interruptible = True
        try:
            if self.requested:
                raise StopRequested
            yield
        finally:
            self._interruptible = False


def _has_terminal() -> bool:
    """Whether this process has a controlling terminal: somebody runs it by hand."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
