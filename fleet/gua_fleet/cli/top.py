"""`gua-fleet top`: the fleet live, one line a host, one cell a card."""

from __future__ import annotations

import argparse
import sys
import threading
import time

from gua.cli.output import add_format_option, document_text
from gua.cli.screen import read_screen
from gua.clock import SystemClock
from gua.errors import ExitStatus
from gua.units import to_iso
from gua_fleet.ask import exit_status
from gua_fleet.cli.common import add_fleet_options, ask_fleet, print_text, read_inventory, seconds, sweep_settings
from gua_fleet.cli.now import with_knowledge
from gua_fleet.inventory.load import Inventory
from gua_fleet.last_seen import load_seen, state_path
from gua_fleet.present import Knowledge
from gua_fleet.probes.probe import Probe
from gua_fleet.probes.report import report_probe
from gua_fleet.ssh.stop import stop_signals
from gua_fleet.top.board import Board
from gua_fleet.top.frame import ORDERS, Picture, compose, plain
from gua_fleet.view_top import top_document

_PLAIN_COLUMNS = 100
_WINDOW_MS = 15 * 60_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: how often, in which order, which hosts, how to ask."""
    view = parser.add_argument_group("how it is shown")
    view.add_argument("--every", type=seconds, default=10.0, metavar="TIME", help="ask so often (default 10s)")
    view.add_argument("--sort", choices=ORDERS, default="name", help="order of the hosts; `s` changes it")
    add_format_option(view, "table")
    view.add_argument("--once", action="store_true", help="one picture as plain text (so it is without a terminal)")
    add_fleet_options(parser, verbose=False)  # the picture is how far it is


def run(options: argparse.Namespace) -> int:
    """Show the fleet until `q`. One plain picture: exit status 1 when a host did not answer, 3 when none did."""
    if options.once or options.format == "json" or not sys.stdout.isatty():
        return _once(options)
    inventory = read_inventory(options)
    _live(options, inventory)
    return int(ExitStatus.OK)


def _once(options: argparse.Namespace) -> int:
    answers = ask_fleet(options, _probe())
    status = int(exit_status(answers.results, options.allow_missing))
    if options.format == "json":
        now = to_iso(SystemClock().now_ms())
        print_text(document_text(top_document(with_knowledge(options, answers), generated_at=now)))
        return status
    board = Board(answers.inventory.hosts, Knowledge())
    for result in answers.results:
        board.note(result)
    screen = read_screen(sys.stdout, pipe_columns=_PLAIN_COLUMNS)
    picture = Picture(options.sort, unicode=screen.unicode)
    print_text(plain(compose(board.rows(), picture, columns=screen.width, lines=None, clock=_clock())))
    return status


def _live(options: argparse.Namespace, inventory: Inventory) -> None:
    from gua_fleet.ssh.keep import KeptFleet  # the SSH libraries, and rich, take their time to load
    from gua_fleet.top.terminal import Terminal
    from gua_fleet.top.watch import ask_on, show_on

    board = Board(inventory.hosts, Knowledge(seen=load_seen(state_path(), inventory.hosts)))
    stop = threading.Event()
    with KeptFleet(inventory.hosts, sweep_settings(options), notice=board.say) as fleet, stop_signals():
        asking = threading.Thread(
            target=ask_on, args=(fleet, _probe, board, options.every, stop), name="ask the fleet", daemon=True
        )
        with Terminal(sys.stdout) as terminal:
            board.on_change(terminal.wake)
            asking.start()
            try:
                picture = Picture(options.sort, unicode=read_screen(sys.stdout).unicode)
                show_on(board, terminal, picture, _clock)
            finally:
                stop.set()
                board.on_change(None)


def _probe() -> Probe:
    now_ms = SystemClock().now_ms()
    return report_probe(since_ms=now_ms - _WINDOW_MS, until_ms=now_ms, tz="UTC")


def _clock() -> str:
    return time.strftime("%H:%M:%S")
