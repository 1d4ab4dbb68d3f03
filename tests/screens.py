"""Screens and tables in the documentation that come from the program itself.

`python -m tests.screens` writes them anew; a test fails when one is out of date. A block is what lies between
`<!-- screen: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from gua.cli.main import COMMANDS as AGENT_COMMANDS
from gua.cli.report import configure, read_report, rendered
from gua.cli.screen import Screen
from gua.config import KEYS, MODEL_KEYS, describe_default
from gua.daemon.status import sentence
from gua.demo.history import fill
from gua.demo.profile import DEMO_HOSTS
from gua.demo.recording import open_demo_writer
from gua.doctor.check import QUESTIONS
from gua.ledger.explain_user import explain_user
from gua.ledger.holds import Wanted, build_holds
from gua.ledger.page import render_text
from gua.ledger.render_explain import explain_page
from gua.ledger.render_holds import holds_page
from gua.location import Location
from gua.metrics.names import METRICS
from gua.store.database import open_reader
from gua.top.frame import Shown, frame, keys_line, plain_text
from gua.top.sources import StoreSource
from gua.units import to_iso
from gua_fleet.anonymous import without_names
from gua_fleet.ask import ask_inventory
from gua_fleet.cli import report
from gua_fleet.cli.demo import closing_text
from gua_fleet.cli.main import COMMANDS as FLEET_COMMANDS
from gua_fleet.config import KEYS as FLEET_KEYS
from gua_fleet.demo.fleet import database, make_fleet
from gua_fleet.free import Wanted as WantedCards
from gua_fleet.free import find_free, parse_memory_mb
from gua_fleet.holds import Filter, current_holds
from gua_fleet.inventory.load import load_inventory
from gua_fleet.merge import Known, merge_reports
from gua_fleet.model import Document, Host, HostResult, Outcome, Seen
from gua_fleet.outcomes import MEANINGS
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

ROOT = Path(__file__).parent.parent
# A Monday morning, so that the week is whole.
NOW_MS = 1_772_438_400_000  # 2026-03-02T08:00:00Z
SINCE_MS = NOW_MS - 7 * 86_400_000


class StandingClock:
    """It is always the same moment."""

    def now_ms(self) -> int:
        return NOW_MS

    def monotonic_s(self) -> float:
        return 0.0

    def sleep_s(self, seconds: float) -> None:
        raise AssertionError("nothing on a screen waits")


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
    results = [
        HostResult(Host(name, name), Outcome.OK, document={"ready": old not in checks, "checks": checks})
        for name, checks in found.items()
    ]
    return rendered_view(doctor_view(results, {}, verbose=False), "table", 80)


def _check(name: str, status: str, summary: str, cure: str) -> dict[str, str]:
    return {"id": name, "status": status, "summary": summary, "cure": cure}


def fleet_top() -> str:
    """`gua-fleet top` of the made-up fleet, in a terminal of 80x24."""
    results, _ = demo_day()
    board = Board([result.host for result in results], Knowledge(seen=DEMO_SEEN), monotonic_s=lambda: 0.0)
    for result in results:
        board.note(result)
    return plain(compose(board.rows(), Picture(), columns=80, lines=None, clock="12:00:00"))


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


def report_page() -> str:
    """The whole HTML report of the made-up fleet."""
    return render_html(demo_document())


def _local_result(host: Host, directory: Path, since_ms: int) -> HostResult:
    location = Location(database(directory, host.name).absolute(), "the demonstration's")
    document = read_report(location, since_ms, NOW_MS, "UTC", None, StandingClock())
    return HostResult(host, Outcome.OK, document=dict(document))


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


def _agent_day(asked: Callable[[Path], str]) -> str:
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


def commands() -> str:
    """Every command of both programs in one line."""
    lines = ["| command | does |", "| --- | --- |"]
    for program, table in (("gua-fleet", FLEET_COMMANDS), ("gua", AGENT_COMMANDS)):
        lines += [f"| `{program} {name}` | {summary} |" for name, (_, summary) in table.items()]
    return "\n".join(lines) + "\n"


def import_table() -> str:
    """What an import of a day of two cards, recorded by an early version, says."""
    from gua.legacy.document import import_document, render_import
    from gua.legacy.source import open_old
    from gua.legacy.take_over import Import, Nothing
    from gua.rulebook import RuleBook
    from tests.agent.legacy.old_databases import HOST, OldProc, OldSample, old_database

    held = OldSample("GPU-5c1d2e3f", 0, (OldProc("ada"), OldProc("ben", pid=7)))
    with tempfile.TemporaryDirectory() as folder:
        path = old_database(Path(folder) / "old.db", "1.0.3", [[held, OldSample("GPU-77aa0b1c")]] * 24, 3600)
        with open_old(path) as old:
            taken = Import(old, RuleBook(), HOST).look(Nothing())
            columns = old.columns_of
    return render_import(import_document(taken, columns, "old.db", "/var/lib/gua/gua.db", dry_run=False))


def settings() -> str:
    """The keys of the settings file, as a table."""
    lines = ["| section | key | default | meaning | write |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| `[{key.section}]` | `{key.name}` | {_default(describe_default(key))} | {key.meaning} | {key.kind.value} |"
        for key in KEYS
    ]
    return "\n".join(lines) + "\n"


def fleet_settings() -> str:
    """The keys of gua-fleet.yml that are plain values, as a table."""
    lines = ["| key | default | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{key.name}` | {key.default} | {key.meaning} |" for key in FLEET_KEYS]
    return "\n".join(lines) + "\n"


def model_rules() -> str:
    """The keys of `[[rule.model]]`, as a table."""
    lines = ["| key of `[[rule.model]]` | default | meaning | write |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{key.name}` | {'has to be said' if key.section != 'rule' else 'as in `[rule]`'} | {key.meaning} |"
        f" {key.kind.value} |"
        for key in MODEL_KEYS
    ]
    return "\n".join(lines) + "\n"


def metrics() -> str:
    """Every metric, as a table."""
    lines = ["| metric | labels | now | tells |", "| --- | --- | --- | --- |"]
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        asked = " (`--per-user`)" if metric.per_user else ""
        lines.append(f"| `{metric.name}`{asked} | {labels} | {'now' if metric.fresh else ''} | {metric.help} |")
    return "\n".join(lines) + "\n"


def status_screen() -> str:
    """The sentences of `gua status`, most wanted first."""
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
    }
    lost = {"last_tick_status": "partial", "card_states": {"unknown": 1}, "unknown_by_reason": {"card_lost": 1}}
    documents = (
        well,
        {**well, **lost, "unit": "gua-agent.service"},
        {**well, "state": "paused", "last_tick_age_s": 300.0},
        {**well, "state": "stuck", "last_tick_age_s": 720.0},
        {**well, "state": "stopped", "pid": None, "last_tick_age_s": 10_000.0},
    )
    return "".join(f"{sentence(document)}\n" for document in documents)


def doctor_checks() -> str:
    """Every check of `gua doctor`, as a table."""
    lines = ["| id | asks |", "| --- | --- |"]
    lines += [f"| `{identifier}` | {question} |" for identifier, question in QUESTIONS.items()]
    return "\n".join(lines) + "\n"


def outcomes() -> str:
    """What may become of a host, as a table."""
    lines = ["| outcome | means | do |", "| --- | --- | --- |"]
    for outcome, (meaning, cure) in MEANINGS.items():
        name = f"{outcome.value}:STAGE" if outcome is Outcome.TIMEOUT else outcome.value
        lines.append(f"| `{name}` | {meaning} | {cure} |")
    return "\n".join(lines) + "\n"


def _default(text: str) -> str:
    return text if text == "not set" else f"`{text}`"


def _screen(text: str) -> str:
    return f"```text\n{text}```\n"


# file -> name of the block -> what belongs into it
BLOCKS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "README.md": {"fleet-demo": lambda: _screen(fleet_demo()), "commands": commands},
    "docs/fleet-commands.md": {
        "free": lambda: _screen(free(WantedCards())),
        "free-wanted": lambda: _screen(free(WantedCards("H100", parse_memory_mb("40G"), 4 * 3600.0))),
        "holds": lambda: _screen(holds()),
        "top": lambda: _screen(fleet_top()),
        "status": lambda: _screen(status()),
        "doctor": lambda: _screen(fleet_doctor()),
        "sync-once": lambda: _screen(fleet_sync()),
    },
    "docs/fleet-ssh.md": {"outcomes": outcomes},
    "docs/fleet-report.md": {
        "report": lambda: _screen(render_fleet(demo_document())),
        "report-slide": lambda: _screen(report_for_a_slide()),
        "report-csv": lambda: _screen(report_csv()),
        "report-mail": lambda: _screen(report_mail()),
        "report-help": lambda: _screen(report_help()),
    },
    "docs/settings.md": {"settings": settings, "model-rules": model_rules},
    "docs/daemon.md": {"status": lambda: _screen(status_screen())},
    "docs/metrics.md": {"metrics": metrics},
    "docs/doctor.md": {"doctor-checks": doctor_checks},
    "docs/ledger.md": {
        "holds": lambda: _screen(_agent_day(holds_screen)),
        "explain": lambda: _screen(_agent_day(explain_screen)),
        "top": lambda: _screen(_agent_day(top_screen)),
    },
    "docs/import.md": {"import": lambda: _screen(import_table())},
    "docs/report.md": {
        "report-text": lambda: _screen(agent_week("text", ("--sensitivity",))),
        "report-csv": lambda: _screen(report_csv_lines()),
        "report-md": lambda: _screen(agent_week("md").partition("## 4.")[0]),
    },
    "docs/fleet.md": {"fleet-settings": fleet_settings},
}

# Files that the program writes whole.
FILES: Mapping[str, Callable[[], str]] = {
    "docs/report.html": lambda: agent_week("html"),
    "docs/fleet-report.html": report_page,
}


def with_blocks(text: str, blocks: Mapping[str, Callable[[], str]]) -> str:
    """`text` with its blocks filled anew. Raises ValueError when one is not there exactly once."""
    for name, make in blocks.items():
        begin, end = f"<!-- screen: {name} -->\n", "<!-- end -->"
        made = f"{begin}{make()}{end}"
        text, count = re.subn(re.escape(begin) + ".*?" + re.escape(end), lambda _, made=made: made, text, flags=re.S)
        if count != 1:
            raise ValueError(f"{count} blocks named {name}")
    return text


def main() -> None:
    for name, blocks in BLOCKS.items():
        path = ROOT / name
        path.write_text(with_blocks(path.read_text(encoding="utf-8"), blocks), encoding="utf-8")
        sys.stdout.write(f"{name}\n")
    for name, make_file in FILES.items():
        (ROOT / name).write_text(make_file(), encoding="utf-8")
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
