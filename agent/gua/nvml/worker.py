"""The sampling child: `python -m gua.nvml.worker FD [PROGRESS_FD]`, started by `gua.nvml.child`, never by people.

It alone loads NVML, whose calls may block for ever in the kernel and whose library dies with a driver upgrade. Over
the socket FD, as pickles of multiprocessing.connection, it says None once NVML is initialised (or cannot be), and
then answers each request with (its number, Snapshot). A request is a number, or (number, places to leave out: see
gua.nvml.leave_out). Requests that piled up meanwhile are answered as one, by the newest. In the memory PROGRESS_FD it
tells which call it is in. It ends when the other side closes, and lets go of the driver first where the driver lets it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Callable, Optional

from gua.model import Fault, FaultKind, Snapshot
from gua.nvml.leave_out import NOTHING, LeaveOut
from gua.nvml.progress import Progress

Read = Callable[[LeaveOut], Snapshot]

# How long an orphan may take to shut NVML down. A call that blocks must not outlive the parent for ever.
_ORPHAN_GRACE_S = 2.0


def serve(channel: Connection, progress: Optional[Progress] = None) -> None:
    """Answer requests until the parent closes its side."""
    read, close = _open_nvml(progress)
    try:
        channel.send(None)
        while True:
            request = channel.recv()
            while channel.poll():
                request = channel.recv()
            number, leave_out = request if isinstance(request, tuple) else (request, NOTHING)
            channel.send((number, _guarded(read, leave_out)))
    except (EOFError, ConnectionError):
        return
    finally:
        close()


def _open_nvml(progress: Optional[Progress]) -> tuple[Read, Callable[[], None]]:
    """How to read a snapshot, and how to let go; without NVML every snapshot says what was wrong with it."""
    try:
        from gua.nvml.read import NvmlReader  # here, so that a missing binding is an answer and not a crash
    except ImportError as exc:
        fault = Fault("import pynvml", type(exc).__name__, FaultKind.FAILED, f"nvidia-ml-py is not usable: {exc}")
        return (lambda _: Snapshot(fault=fault)), (lambda: None)
    reader = NvmlReader(progress)
    init_fault = reader.open()
    if init_fault is not None:
        return (lambda _: Snapshot(fault=init_fault)), (lambda: None)
    return reader.read, reader.close


def _guarded(read: Read, leave_out: LeaveOut) -> Snapshot:
    try:
        return read(leave_out)
    except Exception as exc:  # noqa: BLE001 - the tick guard: a defect of ours costs this tick, and is told
        return Snapshot(fault=Fault("gua.nvml.read", type(exc).__name__, FaultKind.FAILED, str(exc)))


def _end_with_parent(fd: int) -> None:
    """End this process soon after the other side of `fd` is gone, even if the main thread is stuck in a call."""
    hung_up = select.poll()
    hung_up.register(fd, 0)  # no event asked for: only the hang-up itself is reported
    hung_up.poll()
    time.sleep(_ORPHAN_GRACE_S)
    os._exit(1)


def main(argv: Sequence[str]) -> int:
    """Serve the socket whose number is the first argument."""
    if len(argv) not in (2, 3) or not all(fd.isdigit() for fd in argv[1:]):
        sys.stderr.write("gua.nvml.worker is started by gua itself; run `gua sync-once --push never` instead\n")
        return 2
    channel = Connection(int(argv[1]))
    # ^C goes to the whole terminal; the parent decides when its child ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    threading.Thread(target=_end_with_parent, args=(channel.fileno(),), daemon=True).start()
    serve(channel, Progress(int(argv[2])) if len(argv) == 3 else None)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
