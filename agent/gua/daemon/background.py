"""Leaving the terminal: a process of its own session, that first says whether it could begin."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gua.clock import Clock
from gua.errors import GuaError
from gua.text import shown

logger = logging.getLogger(__name__)

# Longer than the patience for another program's transaction on the database.
PATIENCE_S = 45.0
_MESSAGE_BYTES = 4096


@dataclass(frozen=True)
class Begun:
    """What became of a start. pid: of the daemon. error: why it did not begin, empty when it did."""

    pid: int
    error: str = ""


def in_background(
    work: Callable[[Callable[[], None]], None], directory: Path, clock: Clock, patience_s: float = PATIENCE_S
) -> Begun:
    """Do `work` in a process of its own session, and come back when it says that it has begun, or that it could not.

    work: given what to call once it has begun; it configures its own log. directory: the daemon's current one.
    One that says neither in time is ended. Only the caller comes back, never the daemon.
    """
    read_fd, write_fd = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_fd)
        _work(work, directory, write_fd)
    os.close(write_fd)
    try:
        os.waitpid(child, 0)
        return _await(read_fd, clock, patience_s)
    finally:
        os.close(read_fd)


def _leave(directory: Path, write_fd: int) -> None:
    """Become a process without terminal, that no session's end and no shell knows. Ends the one in between."""
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir(directory)  # where it was started may have to be unmounted one day
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    # Those that are open, and not every number that might be: containers allow a thousand million
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:
        if fd > 2 and fd != write_fd:
            with contextlib.suppress(OSError):  # the one that listed them is closed
                os.close(fd)
    # A log of its own: what the journal adds for its services, and whom they report to, is not for it
    for name in ("JOURNAL_STREAM", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "INVOCATION_ID"):
        os.environ.pop(name, None)


def _work(work: Callable[[Callable[[], None]], None], directory: Path, write_fd: int) -> None:
    """Leave, and work to the end, which is the process's own."""

    def tell(message: str) -> None:
        with contextlib.suppress(OSError):  # nobody waits any more
            os.write(write_fd, message.encode("utf-8", "backslashreplace")[:_MESSAGE_BYTES])

    def begun() -> None:
        tell("begun\n")

    status = 1
    with contextlib.suppress(BaseException):  # it must end here, and not go on as a second copy of its caller
        try:
            _leave(directory, write_fd)
            tell(f"{os.getpid()}\n")
            work(begun)
            status = 0
        except GuaError as exc:
            logger.error("%s", exc)
            tell(f"failed {shown(str(exc), 1000)}\n")
        except Exception as exc:
            logger.exception("this is a defect of ours; please report it")
            tell(f"failed a defect of ours: {type(exc).__name__}\n")
        logging.shutdown()
    os._exit(status)


def _await(read_fd: int, clock: Clock, patience_s: float) -> Begun:
    give_up_s, said = clock.monotonic_s() + patience_s, b""
    while True:
        pid, answer = _parse(said)
        if answer == "begun":
            return Begun(pid)
        if answer.startswith("failed "):
            return Begun(pid, answer[len("failed ") :])
        left_s = give_up_s - clock.monotonic_s()
        if left_s <= 0 or not select.select([read_fd], [], [], left_s)[0]:
            break
        new = os.read(read_fd, _MESSAGE_BYTES)
        if not new:
            return Begun(pid, "it ended before it had begun")
        said += new
    # The pipe is still open at its end, so this pid is still its
    if pid:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    return Begun(pid, f"it had not begun after {patience_s:g} s, and was told to stop")


def _parse(said: bytes) -> tuple[int, str]:
    """Pid and answer in what came so far; 0 and empty as long as they did not. Pure."""
    first, complete, rest = said.decode("utf-8", "replace").partition("\n")
    return (int(first), rest.partition("\n")[0] if "\n" in rest else "") if complete else (0, "")
