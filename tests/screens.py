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
from pathlib import Path

from gua.cli.main import COMMANDS as AGENT_COMMANDS
from gua.cli.report import configure, read_report, rendered
from gua.cli.screen import Screen
from gua.config import KEYS, MODEL_KEYS, describe_default
from gua.demo.history import fill
from gua.demo.profile import DEMO_HOSTS
from gua.demo.recording import open_demo_writer
from gua.doctor.check import QUESTIONS
from gua.location import Location
from gua_fleet.ask import ask_inventory
from gua_fleet.cli.demo import closing_text
from gua_fleet.cli.main import COMMANDS as FLEET_COMMANDS
from gua_fleet.demo.fleet import database, make_fleet
from gua_fleet.inventory.load import load_inventory
from gua_fleet.merge import merge_reports
from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.probes.report import report_probe
from gua_fleet.render_table import render_fleet
from gua_fleet.ssh.sweep import SweepSettings

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


def fleet_demo() -> str:
    """What `make demo` prints, made by the same functions, at a moment that stays."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)  # so that the screen names the inventory as a reader will see it
        try:
            return _fleet_demo(Path("gua-demo"))
        finally:
            os.chdir(here)


def _fleet_demo(directory: Path) -> str:
    inventory = make_fleet(directory, now_ms=NOW_MS, utc_offset_ms=0)
    probe = report_probe(since_ms=SINCE_MS, until_ms=NOW_MS, tz="UTC")
    results = [
        _local_result(host, directory) if host.connection == "local" else None
        for host in load_inventory(str(inventory)).hosts
    ]
    asked = ask_inventory(load_inventory(str(inventory), limit="gpu04"), probe, SweepSettings(1, 20.0, False))
    answers = [result or asked.results[0] for result in results]
    document = merge_reports(answers, since_ms=SINCE_MS, until_ms=NOW_MS, tz="UTC", generated_at_ms=NOW_MS)
    return render_fleet(document) + closing_text(inventory, ".venv/bin/gua-fleet")


def _local_result(host: Host, directory: Path) -> HostResult:
    location = Location(database(directory, host.name).absolute(), "the demonstration's")
    report = read_report(location, SINCE_MS, NOW_MS, "UTC", None, StandingClock())
    return HostResult(host, Outcome.OK, document=dict(report))


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


def model_rules() -> str:
    """The keys of `[[rule.model]]`, as a table."""
    lines = ["| key of `[[rule.model]]` | default | meaning | write |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{key.name}` | {'has to be said' if key.section != 'rule' else 'as in `[rule]`'} | {key.meaning} |"
        f" {key.kind.value} |"
        for key in MODEL_KEYS
    ]
    return "\n".join(lines) + "\n"


def doctor_checks() -> str:
    """Every check of `gua doctor`, as a table."""
    lines = ["| id | asks |", "| --- | --- |"]
    lines += [f"| `{identifier}` | {question} |" for identifier, question in QUESTIONS.items()]
    return "\n".join(lines) + "\n"


def _default(text: str) -> str:
    return text if text == "not set" else f"`{text}`"


def _screen(text: str) -> str:
    return f"```text\n{text}```\n"


# file -> name of the block -> what belongs into it
BLOCKS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "README.md": {"fleet-demo": lambda: _screen(fleet_demo()), "commands": commands},
    "docs/settings.md": {"settings": settings, "model-rules": model_rules},
    "docs/doctor.md": {"doctor-checks": doctor_checks},
    "docs/import.md": {"import": lambda: _screen(import_table())},
    "docs/report.md": {
        "report-text": lambda: _screen(agent_week("text", ("--sensitivity",))),
        "report-csv": lambda: _screen(report_csv_lines()),
        "report-md": lambda: _screen(agent_week("md").partition("## 4.")[0]),
    },
}

# Files that the program writes whole.
FILES: Mapping[str, Callable[[], str]] = {"docs/report.html": lambda: agent_week("html")}


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
    for name, make in FILES.items():
        (ROOT / name).write_text(make(), encoding="utf-8")
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
