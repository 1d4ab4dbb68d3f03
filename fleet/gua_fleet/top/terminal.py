"""A terminal taken over for a while and given back as it was, whatever happens in between."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, TextIO

from rich.console import Console, ScreenContext
from rich.text import Text

from gua_fleet.top.frame import Line

# What terminals send; the second form where the keypad is in application mode.
_KEYS = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[5~": "pgup",
    b"\x1b[6~": "pgdn",
    b"\x1b[H": "home",
    b"\x1bOH": "home",
    b"\x1b[F": "end",
    b"\x1bOF": "end",
}
_LETTERS = {b"k": "up", b"j": "down", b" ": "pgdn", b"b": "pgup", b"g": "home", b"G": "end"}


def parse_keys(raw: bytes) -> list[str]:
    """`up`, `pgdn` and so on for the keys that move; letters as they are; what is not known is left out. Pure."""
    keys: list[str] = []
    while raw:
        found = next((sequence for sequence in _KEYS if raw.startswith(sequence)), None)
        if found is not None:
            keys.append(_KEYS[found])
            raw = raw[len(found) :]
            continue
        if raw.startswith(b"\x1b"):
            return keys  # a sequence that means nothing here; what follows belongs to it
        first, raw = raw[:1], raw[1:]
        keys.append(_LETTERS.get(first, first.decode("ascii", "ignore")))
    return [key for key in keys if key]


class Terminal:
    """The whole screen, keys without Enter, no cursor. Leaving it puts everything back, also after an error.

    Ctrl-Z gives the terminal back too, and takes it again when the program goes on. Main thread only.
    """

    def __init__(self, output: TextIO, keyboard: TextIO = sys.stdin) -> None:
        self._console = Console(file=output, highlight=False, markup=False, emoji=False)
        self._keyboard = keyboard.fileno() if keyboard.isatty() else None
        self._saved: list[Any] | None = None
        self._screen: ScreenContext | None = None
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        self._handlers: dict[int, Any] = {}

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, as they are now; COLUMNS and LINES tell how a terminal was when they were exported."""
        with contextlib.suppress(OSError):  # gone: `keys` tells
            columns, lines = os.get_terminal_size(self._console.file.fileno())
            self._console.size = (columns or 80, lines or 24)  # one that was never told its size says 0
        return self._console.size.width, self._console.size.height

    def __enter__(self) -> Terminal:
        try:
            self._take()
            self._handlers[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, self._on_resize)
            self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._on_stop)
        except BaseException:
            self._give_back()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._give_back()
        os.close(self._woken)
        os.close(self._wake)

    def draw(self, lines: Sequence[Line]) -> None:
        """Show these lines instead of those before."""
        if self._screen is not None:
            text = Text("\n", no_wrap=True, end="").join(Text.assemble(*line, no_wrap=True, end="") for line in lines)
            self._screen.update(text)

    def wake(self) -> None:
        """End a `keys` that waits; from any thread."""
        with contextlib.suppress(OSError):  # full: then it wakes anyway; closed: nobody waits
            os.write(self._wake, b"!")

    def keys(self, timeout_s: float) -> list[str]:
        """Keys pressed, after at most so long; none where it was woken. Raises EOFError when the terminal is gone."""
        watched = [self._woken] if self._keyboard is None else [self._woken, self._keyboard]
        ready, _, _ = select.select(watched, [], [], max(0.0, timeout_s))
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 4096)
        if self._keyboard is None or self._keyboard not in ready:
            return []
        try:
            raw = os.read(self._keyboard, 256)
        except OSError as exc:
            raise EOFError from exc
        if not raw:
            raise EOFError
        return parse_keys(raw)

    def _take(self) -> None:
        if self._keyboard is not None:
            self._saved = termios.tcgetattr(self._keyboard)
            tty.setcbreak(self._keyboard, termios.TCSANOW)
        self._screen = self._console.screen(hide_cursor=True)
        self._screen.__enter__()

    def _give_back(self) -> None:
        """Nothing may come in between, and a terminal that is gone needs nothing."""
        with _signals_held():
            screen, self._screen = self._screen, None
            if screen is not None:
                with contextlib.suppress(OSError):
                    screen.__exit__(None, None, None)
                    self._console.file.flush()
            saved, self._saved = self._saved, None
            if saved is not None and self._keyboard is not None:
                with contextlib.suppress(termios.error):
                    termios.tcsetattr(self._keyboard, termios.TCSADRAIN, saved)

    def _on_resize(self, number: int, frame: FrameType | None) -> None:
        self.wake()

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()
        self.wake()


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
