"""Asks the fleet again and again, and shows what comes: two threads and a board between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from gua_fleet.probes.probe import Probe
from gua_fleet.ssh.keep import KeptFleet
from gua_fleet.top.board import Board
from gua_fleet.top.frame import Picture, compose, page_of
from gua_fleet.top.terminal import Terminal

# Ages are told in seconds; answers come by the hundred, and nobody reads faster than this.
_REDRAW_S = 1.0
_LEAST_BETWEEN_S = 0.1


def ask_on(
    fleet: KeptFleet, make_probe: Callable[[], Probe], board: Board, every_s: float, stop: threading.Event
) -> None:
    """Ask every `every_s` seconds until stopped. A question that takes longer is followed by the next at once."""
    try:
        while not stop.is_set():
            begun_s = time.monotonic()
            fleet.ask(make_probe(), progress=lambda standing: board.note(standing.latest))
            stop.wait(max(0.0, every_s - (time.monotonic() - begun_s)))
    except BaseException as exc:  # noqa: BLE001 - told to the thread that shows, which ends the program with it
        board.fail(exc)


def show_on(board: Board, terminal: Terminal, picture: Picture, clock: Callable[[], str]) -> None:
    """Draw and read keys until `q`, or until the terminal is gone. Raises what ended the asking."""
    while True:
        if board.failure is not None:
            raise board.failure
        rows, (columns, lines) = board.rows(), terminal.size
        terminal.draw(compose(rows, picture, columns=columns, lines=lines, clock=clock(), note=board.notice))
        drawn_s = time.monotonic()
        try:
            keys = terminal.keys(_REDRAW_S)
        except EOFError:
            return
        for key in keys:
            if key in ("q", "Q"):
                return
            picture = picture.after(key, len(rows), page_of(lines))
        if not keys:
            time.sleep(max(0.0, _LEAST_BETWEEN_S - (time.monotonic() - drawn_s)))
