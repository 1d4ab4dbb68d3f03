"""What `gua` prints of a made-up host."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gua.cli.report import configure, read_report, rendered
from gua.cli.screen import Screen
from gua.cloud.heard import Board, Heard, board_line, to_board
from gua.daemon.status import sentence
from gua.demo.history import fill
from gua.demo.profile import DEMO_HOSTS
from gua.demo.recording import open_demo_writer
from gua.ledger.explain_user import explain_user
from gua.ledger.holds import Wanted, build_holds
from gua.ledger.page import render_text
from gua.ledger.render_explain import explain_page
from gua.ledger.render_holds import holds_page
from gua.location import Location
from gua.store.database import open_reader
from gua.top.frame import Shown, frame, keys_line, plain_text
from gua.top.sources import StoreSource
from tests.screens.moment import NOW_MS, SINCE_MS, StandingClock


def agent_week(form: str, arguments: tuple[str, ...] = ()) -> str:
    """What `gua report` prints of a made-up host's week, with a gap and a card that was lost, in any of its formats."""
    parser = argparse.ArgumentParser()
    configure(parser)
    options = parser.parse_args(["--format", form, *arguments])
    profile = replace(DEMO_HOSTS["gpu02"], lost_from_ms=NOW_MS - 2 * 86_400_000)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "gua.db"
        with open_demo_writer(path, profile, StandingClock()) as writer:
            fill(writer, profile, since_ms=SINCE_MS, until_ms=NOW_MS - 75 * 3_600_000)
            fill(writer, profile, since_ms=NOW_MS - 72 * 3_600_000, until_ms=NOW_MS)
        extras = {"timeline": form == "html", "sensitivity": options.sensitivity}
        location = Location(path, "the demonstration's")
        report = read_report(location, SINCE_MS, NOW_MS, "UTC", None, StandingClock(), **extras)
    return rendered(report, options, Screen(width=80, unicode=True, colour=False))


def report_csv_lines() -> str:
    """The heading of the table, and the first rows of each of its sections."""
    lines, shown_rows, seen = agent_week("csv").splitlines(), [], Counter[str]()
    for line in lines:
        section = line.split(",")[3]
        seen[section] += 1
        if seen[section] <= (1 if section == "section" else 3):
            shown_rows.append(line)
    return "\n".join(shown_rows) + "\n"


def agent_day(asked: Callable[[Path], str]) -> str:
    """What is made of a made-up host's last day, sampled each minute, with an hour missing."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "gua.db"
        with open_demo_writer(path, DEMO_HOSTS["gpu02"], StandingClock()) as writer:
            for since_h, until_h in ((24, 20), (19, 0)):
                since_ms, until_ms = (NOW_MS - hours * 3_600_000 for hours in (since_h, until_h))
                fill(writer, DEMO_HOSTS["gpu02"], since_ms=since_ms, until_ms=until_ms, interval_ms=60_000)
        return asked(path)


_DAY = {"since_ms": NOW_MS - 86_400_000, "until_ms": NOW_MS, "now_ms": NOW_MS, "zone_name": "UTC"}


def holds_screen(path: Path) -> str:
    document = build_holds(lambda: open_reader(path), Wanted(min_ms=4 * 3_600_000), **_DAY)
    return render_text(holds_page(document), width=112)


def explain_screen(path: Path) -> str:
    """The user with the least to tell of those who shared nothing."""
    document = explain_user(lambda: open_reader(path), "bob", **_DAY)
    return render_text(explain_page(document), width=100)


def top_screen(path: Path) -> str:
    view = StoreSource(path, StandingClock(), None, source="daemon's database").read()
    return plain_text([*frame(view, Shown(), 100), keys_line(Shown(), 100)])


def status_screen() -> str:
    """The sentences of `gua status`, most wanted first, and those on the board."""
    well = {
        "state": "running",
        "pid": 4711,
        "unit": None,
        "held_by": None,
        "interval_s": 30.0,
        "error": None,
        "last_tick_age_s": 12.0,
        "last_tick_status": "ok",
        "cards": 8,
        "card_states": {"active": 8},
        "unknown_by_reason": {},
        "driver_mismatch": None,
    }
    lost = {"last_tick_status": "partial", "card_states": {"unknown": 1}, "unknown_by_reason": {"card_lost": 1}}
    documents = (
        well,
        {**well, **lost, "unit": "gua-agent.service"},
        {**well, "state": "paused", "last_tick_age_s": 300.0},
        {**well, "state": "stuck", "last_tick_age_s": 720.0},
        {**well, "state": "stopped", "pid": None, "last_tick_age_s": 10_000.0},
    )
    took = to_board(Heard("https://board.example.org", "host-1", accepted_ms=0), 40_000)
    failing_since, reason = "2026-03-02T09:00:00Z", "https://board.example.org cannot be reached: connection refused"
    failing: Board = {**took, "last_accepted_age_s": 10_840.0, "failing_since": failing_since, "reason": reason}
    lines = [*map(sentence, documents), board_line(took).rstrip(), board_line(failing).rstrip()]
    return "".join(f"{line}\n" for line in lines)
