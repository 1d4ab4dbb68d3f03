"""A real pseudo-terminal with a program in it: what it draws, keys typed into it, its size, its end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.agent.running import PATIENCE_S, environment

# The child makes the pseudo-terminal its own before the program starts, so that it hears of its size and its end.
_BOOT = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for number in (0, 1, 2):
    os.dup2(fd, number)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOME = "\x1b[H"
OTHER_SCREEN, OWN_SCREEN, CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"


class Terminal:
    def __init__(self, process: subprocess.Popen[bytes], master: int, slave: int) -> None:
        self.process = process
        self._master = master
        self._slave = slave
        self._raw = b""

    @property
    def output(self) -> str:
        """Everything that was written so far."""
        return self._raw.decode("utf-8", "replace")

    @property
    def frame(self) -> list[str]:
        """Lines of the newest whole frame, without sequences."""
        frames = self.output.split(OTHER_SCREEN)[-1].split(HOME)
        whole = frames[-1] if "q quit" in frames[-1] else frames[-2] if len(frames) > 1 else ""
        return [_SEQUENCE.sub("", line).rstrip() for line in whole.replace("\r\n", "\n").split("\n")]

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self._slave)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_until(self, condition: Callable[[Terminal], bool]) -> None:
        """Read until the condition holds; fails with what is on the screen."""
        give_up = time.monotonic() + PATIENCE_S
        while not condition(self):
            assert time.monotonic() < give_up, self.output[-3000:]
            self._read(1.0)
            if self.process.poll() is not None:
                self._drain()
                assert condition(self), self.output[-3000:]

    def wait_for_end(self) -> int:
        self.wait_until(lambda terminal: terminal.process.poll() is not None)
        self._drain()
        return int(self.process.returncode)

    def _read(self, patience_s: float) -> bool:
        if not select.select([self._master], [], [], patience_s)[0]:
            return False
        with contextlib.suppress(OSError):  # EIO: nobody has the other side
            self._raw += os.read(self._master, 65536)
            return True
        return False

    def _drain(self) -> None:
        while self._read(0.0):
            pass


@contextlib.contextmanager
def terminal(home: Path, *arguments: str, columns: int = 100, lines: int = 40, **more: str) -> Iterator[Terminal]:
    """A terminal in which `python ARGUMENTS` runs."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    env = environment(home, **{"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **more})
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        if name not in more:
            env.pop(name, None)
    process = subprocess.Popen(
        [sys.executable, "-c", _BOOT, os.ttyname(slave), *arguments],
        env=env,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Terminal(process, master, slave)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
        os.close(master)
        os.close(slave)
