"""What `gua-fleet` prints of the made-up fleet."""

from __future__ import annotations

import argparse
import os
import tempfile
from functools import lru_cache
from pathlib import Path

from gua import __version__
from gua.cli.report import read_report
from gua.location import Location
from gua.schemas import DOCUMENTS
from gua.units import to_iso
from gua_fleet.anonymous import without_names
from gua_fleet.ask import ask_inventory
from gua_fleet.cli import report
from gua_fleet.cli.demo import closing_text
from gua_fleet.demo.fleet import database, make_fleet
from gua_fleet.free import Wanted as WantedCards
from gua_fleet.free import find_free
from gua_fleet.holds import Filter, current_holds
from gua_fleet.inventory.load import load_inventory
from gua_fleet.merge import Known, merge_reports
from gua_fleet.model import Document, Host, HostResult, Outcome, Seen
from gua_fleet.people import Excuse
from gua_fleet.present import HostNow, Knowledge, fleet_now
from gua_fleet.probes.report import report_probe
from gua_fleet.render_csv import render_csv
from gua_fleet.render_html import render_html
from gua_fleet.render_mail import render_mail
from gua_fleet.render_table import render_fleet
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.top.board import Board
from gua_fleet.top.frame import Picture, compose, plain
from gua_fleet.view import rendered as rendered_view
from gua_fleet.view_doctor import doctor_view
from gua_fleet.view_free import free_view
from gua_fleet.view_holds import holds_view
from gua_fleet.view_status import status_view
from gua_fleet.view_sync import sync_view
from tests.screens.moment import NOW_MS, SINCE_MS, StandingClock

DEMO_SEEN = {"gpu04": Seen("2026-02-27T16:30:00Z", 8, {})}


def fleet_demo() -> str:
    """The begin and the end of what `make demo` prints, made by the same functions, at a moment that stays."""
    begin, _, _ = render_fleet(demo_document()).partition("\n\nBy group\n")
    return f"{begin}\n\n...\n" + closing_text(Path("gua-demo/inventory.yml"), ".venv/bin/gua-fleet")


@lru_cache(maxsize=1)
def demo_document() -> Document:
    """The merged report of the made-up fleet."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)  # so that the screen names the inventory as a reader will see it
        try:
            return _demo_document(Path("gua-demo"))
        finally:
            os.chdir(here)


def _demo_document(directory: Path) -> Document:
    answers = _demo_answers(directory, SINCE_MS)
    known = Known(
        excuses=[Excuse("paper deadline until Friday", user="chen")],
        seen=DEMO_SEEN,
    )
    return merge_reports(answers, since_ms=SINCE_MS, until_ms=NOW_MS, tz="UTC", generated_at_ms=NOW_MS, known=known)


def _demo_answers(directory: Path, since_ms: int) -> list[HostResult]:
    inventory = make_fleet(directory, now_ms=NOW_MS, utc_offset_ms=0)
    probe = report_probe(since_ms=since_ms, until_ms=NOW_MS, tz="UTC")
    results = [
        _local_result(host, directory, since_ms) if host.connection == "local" else None
        for host in load_inventory(str(inventory)).hosts
    ]
    asked = ask_inventory(load_inventory(str(inventory), limit="gpu04"), probe, SweepSettings(1, 20.0, False))
    return [result or asked.results[0] for result in results]


@lru_cache(maxsize=1)
def demo_day() -> tuple[tuple[HostResult, ...], tuple[HostNow, ...]]:
    """The made-up fleet asked for its last day, and what it says of now."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        try:
            results = tuple(_demo_answers(Path("gua-demo"), NOW_MS - 86_400_000))
        finally:
            os.chdir(here)
    return results, fleet_now(results, Knowledge(seen=DEMO_SEEN))


def free(wanted: WantedCards) -> str:
    """`gua-fleet free` of the made-up fleet."""
    hosts = demo_day()[1]
    return rendered_view(free_view(find_free(hosts, wanted), wanted, hosts, generated_at=to_iso(NOW_MS)), "table", 80)


def holds() -> str:
    """`gua-fleet holds` of the made-up fleet."""
    hosts = demo_day()[1]
    found = current_holds(hosts, [Excuse("paper deadline until Friday", user="chen")], NOW_MS)
    view = holds_view(found, Filter(), hosts, left_out=0, generated_at=to_iso(NOW_MS))
    return rendered_view(view, "table", 80)


def status() -> str:
    """`gua-fleet status` of the made-up fleet."""
    return rendered_view(status_view(*demo_day()), "table", 80)


def fleet_doctor() -> str:
    """`gua-fleet doctor` of hosts with faults that are common."""
    off = _check("persistence", "warn", "persistence mode is off", "`nvidia-smi -pm 1`, or nvidia-persistenced")
    old = _check("driver", "fail", "the kernel has driver 550.90, the library is 560.35", "reboot, or load the module")
    found = {"gpu01": [off], "gpu02": [off], "gpu03": [off, old], "gpu04": []}
    agent = {"version": __version__, "documents": DOCUMENTS}
    results = [
        HostResult(
            Host(name, name), Outcome.OK, document={"ready": old not in checks, "checks": checks, "agent": agent}
        )
        for name, checks in found.items()
    ]
    return rendered_view(doctor_view(results, {}, verbose=False), "table", 80)


def _check(name: str, status: str, summary: str, cure: str) -> dict[str, str]:
    return {"id": name, "status": status, "summary": summary, "cure": cure}


def fleet_top() -> str:
    """`gua-fleet top` of the made-up fleet, in a terminal that is just high enough for it."""
    results, _ = demo_day()
    board = Board([result.host for result in results], Knowledge(seen=DEMO_SEEN), monotonic_s=lambda: 0.0)
    for result in results:
        board.note(result)
    return plain(compose(board.rows(), Picture(), columns=80, lines=8, clock="12:00:00"))


def fleet_sync() -> str:
    """`gua-fleet sync-once` of two hosts, one of them paused."""
    seen = {
        "state": "idle-held",
        "reason": None,
        "util_pct": 0,
        "memory_used_mb": 61_000,
        "since": "2026-03-02T08:00:00Z",
    }
    holder = {"user": "alice", "process": "python", "pid": 7, "memory_mb": 60_900, "type": "compute"}
    free_now = {**seen, "state": "truly-idle", "memory_used_mb": 3, "holders": []}
    at = "2026-03-02T12:00:00Z"
    base = {"name": "NVIDIA H100 80GB HBM3", "memory_total_mb": 81_559, "mig": None}
    document: Document = {
        "observed_at": at,
        "status": "ok",
        "stored": True,
        "push": {"mode": "auto", "result": "not-enrolled"},
        "errors": [],
        "host": {"store_id": "s", "boot_id": "b", "scheduler": None},
        "cards": [
            {**base, "uuid": "GPU-0", "index": 0, "now": {**seen, "at": at, "holders": [holder]}},
            {**base, "uuid": "GPU-1", "index": 1, "now": {**free_now, "at": at}},
        ],
    }
    paused = "paused by root until 2026-03-02T13:00:00Z; `gua resume` ends it"
    results = [
        HostResult(Host("gpu01", "gpu01"), Outcome.OK, document=document),
        HostResult(Host("gpu02", "gpu02"), Outcome.PAUSED, paused),
    ]
    return rendered_view(sync_view(results, fleet_now(results), {}, {}), "table", 80)


def report_for_a_slide() -> str:
    """`gua-fleet report --no-names --by user,model`."""
    return render_fleet(without_names(demo_document()), by=("model", "user"))


def report_csv() -> str:
    """The first lines of `--format csv`."""
    return "\n".join(render_csv(demo_document()).splitlines()[:6]) + "\n"


def report_mail() -> str:
    """The head of `--format mail`."""
    head, _, _ = render_mail(demo_document(), to=["gpu-users@example.org"]).decode().partition("\n\n")
    lines = [line for line in head.splitlines() if not line.startswith(("Content-", " boundary"))]
    return "\n".join(lines) + "\n"


def report_help() -> str:
    """`gua-fleet report --help`, as wide as a page."""
    parser = argparse.ArgumentParser("gua-fleet report", formatter_class=_PageWide)
    report.configure(parser)
    return parser.format_help()


class _PageWide(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=110, max_help_position=32)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """As Python 3.13 writes it, on every Python: the value once, behind all names of an option."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def report_page() -> str:
    """The whole HTML report of the made-up fleet."""
    return render_html(demo_document())


def _local_result(host: Host, directory: Path, since_ms: int) -> HostResult:
    location = Location(database(directory, host.name).absolute(), "the demonstration's")
    document = read_report(location, since_ms, NOW_MS, "UTC", None, StandingClock())
    return HostResult(host, Outcome.OK, document=dict(document))
