"""Stopping a daemon from outside. Nothing is signalled that is not surely it."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

from gua.clock import Clock
from gua.daemon.record import DaemonRecord, children_of, read_start_ticks
from gua.errors import GuaError
from gua.text import shown, storable

# Two seconds are what a stop takes; ten are for a host that is nearly standing still.
PATIENCE_S = 10.0
_KILLED_S = 3.0
_CHILDREN_S = 2.0
_LOOK_S = 0.05


@dataclass(frozen=True)
class Stopped:
    """killed: it did not obey, and was ended the hard way. left: pids of its sampling processes that live on."""

    killed: bool
    left: tuple[int, ...]


def stop_process(record: DaemonRecord, clock: Clock, patience_s: float = PATIENCE_S) -> Stopped:
    """Tell the daemon to end, and wait until it has. One that does not obey is killed.

    record: of the daemon that has the lock. Raises GuaError when this user may not, or when it is there after all.
    """
    children = children_of(record.pid)

    def gone() -> bool:
        return not record.is_alive()

    with contextlib.ExitStack() as stack:
        send = _signaller(record, stack)
        send(signal.SIGTERM)
        killed = not _wait(gone, clock, patience_s)
        if killed:
            send(signal.SIGKILL)
            if not _wait(gone, clock, _KILLED_S):
                raise GuaError(
                    f"the daemon (pid {record.pid}) did not end, though it was killed: the kernel holds it; "
                    "only what it waits for there (the driver, a file system) can free it"
                )
    # Of one that was killed they notice it by themselves, at once, unless a driver call holds them
    _wait(lambda: not _living(children), clock, _CHILDREN_S)
    return Stopped(killed, _living(children))


def _living(children: dict[int, Optional[int]]) -> tuple[int, ...]:
    return tuple(pid for pid, start in children.items() if start is not None and read_start_ticks(pid) == start)


def _wait(condition: Callable[[], bool], clock: Clock, patience_s: float) -> bool:
    give_up_s = clock.monotonic_s() + patience_s
    while not condition():
        if clock.monotonic_s() >= give_up_s:
            return False
        clock.sleep_s(_LOOK_S)
    return True


def _signaller(record: DaemonRecord, stack: contextlib.ExitStack) -> Callable[[int], None]:
    """What sends a signal to exactly this process. Raises GuaError when it is gone, or somebody else's."""
    handle = _open_handle(record.pid, stack)
    if not record.is_alive():  # looked at after the handle was taken: what it holds now, it holds for good
        raise GuaError(f"the daemon (pid {record.pid}) has just ended")

    def send(number: int) -> None:
        try:
            if handle is None:
                os.kill(record.pid, number)
            else:
                signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return
        except PermissionError as exc:
            raise GuaError(
                f"the daemon (pid {record.pid}) belongs to {_owner(record.pid)}: stop it as that user, or as root"
            ) from exc

    return send


def _open_handle(pid: int, stack: contextlib.ExitStack) -> Optional[int]:
    """A handle on the process that no other can take over; None before Linux 5.3."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None
    stack.callback(os.close, handle)
    return handle


def _owner(pid: int) -> str:
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
        return shown(storable(pwd.getpwuid(uid).pw_name))
    except OSError:
        return "another user"
    except KeyError:
        return f"uid {uid}"
