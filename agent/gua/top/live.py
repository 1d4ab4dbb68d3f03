"""Draws frames on a terminal with rich, obeys keys, and gives the terminal back however it ends."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import termios
import time
from collections.abc import Iterator
from types import FrameType
from typing import Optional

from rich.console import Console
from rich.live import Live
from rich.text import Text

from gua.top.frame import Line, Shown, cropped, frame, keys_line
from gua.top.sources import ViewSource
from gua.top.view import TopView, next_sort

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NO_KEY = b"\x00"
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;]*[@-~]|O.)?")


class Ended(BaseException):
    """A signal asked for the end. Not an Exception: no guard may take it for a failed sample."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_live(source: ViewSource, how: Shown, interval_ms: int) -> int:
    """Show views until `q` or a signal. Returns 0, or 128 and the signal's number."""
    try:
        with _ending_signals(), _woken() as wake_fd, _keys() as key_fd, _screen(colour=_has_colours()) as live:
            _Loop(source, how, interval_ms, live, [fd for fd in (wake_fd, key_fd) if fd is not None], key_fd).run()
    except Ended as ended:
        return 128 + ended.number
    finally:
        source.close()
    return 0


class _Loop:
    def __init__(
        self, source: ViewSource, how: Shown, interval_ms: int, live: Live, fds: list[int], key_fd: Optional[int]
    ) -> None:
        self._source = source
        self._how = how
        self._interval_s = interval_ms / 1000
        self._live = live
        self._fds = fds
        self._key_fd = key_fd

    def run(self) -> None:
        while True:
            due_s = time.monotonic() + self._interval_s
            view = self._source.read()
            self._draw(view)
            while time.monotonic() < due_s:
                if self._act(self._wait(due_s)):
                    return
                self._draw(view)

    def _wait(self, due_s: float) -> bytes:
        """Keys that were typed until `due_s`, at the latest; none when only the window changed."""
        ready, _, _ = select.select(self._fds, [], [], max(0.0, due_s - time.monotonic()))
        typed = b""
        for fd in ready:
            got = os.read(fd, 1024)
            if fd == self._key_fd:
                if not got:
                    raise Ended(signal.SIGHUP)  # the terminal is gone
                typed = got
        return typed

    def _act(self, typed: bytes) -> bool:
        """Obey keys; whether one of them ends it. The letters of an arrow key's sequence are no keys of ours."""
        for key in _SEQUENCE.sub(b"", typed):
            if key in b"qQ":
                return True
            if key in b"sS":
                self._how = self._how._replace(sort=next_sort(self._how.sort))
            elif key in b"hH":
                self._how = self._how._replace(holders=not self._how.holders)
        return False

    def _draw(self, view: TopView) -> None:
        console = self._live.console
        width, height = os.get_terminal_size(console.file.fileno())
        width, height = width or 80, height or 24  # a terminal that was never told its size says 0
        console.size = (width, height)
        lines = cropped(frame(view, self._how, width), height - 1)
        blank: list[Line] = [()] * (height - 1 - len(lines))
        self._live.update(_text([*lines, *blank, keys_line(self._how, width)]), refresh=True)


def _text(lines: list[Line]) -> Text:
    text = Text(no_wrap=True, overflow="crop", end="")
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        for piece in line:
            text.append(piece.text, piece.style or None)
    return text


def _has_colours() -> bool:
    """Whether the terminal's own description names colours, and nobody asked for none (NO_COLOR)."""
    import curses

    if os.environ.get("NO_COLOR"):
        return False
    try:
        curses.setupterm(os.environ.get("TERM"), sys.stdout.fileno())
        return curses.tigetnum("colors") >= 8
    except curses.error:
        return False


@contextlib.contextmanager
def _screen(*, colour: bool) -> Iterator[Live]:
    """The terminal's other screen, without a cursor, until the end."""
    console = Console(
        file=sys.stdout, force_terminal=True, color_system="standard" if colour else None, highlight=False, markup=False
    )
    live = Live(
        Text(""), console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    )
    try:
        live.start()
        yield live
    finally:
        with contextlib.suppress(OSError):
            live.stop()


@contextlib.contextmanager
def _keys() -> Iterator[Optional[int]]:
    """Standard input giving each key at once and showing none; None where it is no terminal."""
    fd = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
    if fd is None:
        yield None
        return
    before = termios.tcgetattr(fd)
    changed = termios.tcgetattr(fd)
    changed[3] &= ~(termios.ICANON | termios.ECHO)
    changed[6][termios.VSUSP] = _NO_KEY  # a stopped process would leave its screen behind
    changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
    try:
        termios.tcsetattr(fd, termios.TCSANOW, changed)
        yield fd
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSANOW, before)


@contextlib.contextmanager
def _woken() -> Iterator[int]:
    """A descriptor that can be read when the window changed its size."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)

    def wake(number: int, _: Optional[FrameType]) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(write_fd, b"w")

    before = signal.signal(signal.SIGWINCH, wake)
    try:
        yield read_fd
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(read_fd)
        os.close(write_fd)


@contextlib.contextmanager
def _ending_signals() -> Iterator[None]:
    """Signals that end it raise Ended, once: what gives the terminal back is not to be ended."""

    def end(number: int, _: Optional[FrameType]) -> None:
        for one in _ENDING:
            signal.signal(one, signal.SIG_IGN)
        raise Ended(number)

    before = {one: signal.signal(one, end) for one in _ENDING}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
