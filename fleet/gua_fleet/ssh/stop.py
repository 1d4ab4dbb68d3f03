"""The signals that end a sweep early, all made to look like Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stop_signals() -> Iterator[None]:
    """Within it SIGTERM and SIGHUP raise KeyboardInterrupt, unless somebody else wants them (main thread only)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # somebody who ignores a signal (nohup) or handles it has a reason
    ours = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
