"""Tables of what both programs know: commands, documents, settings, checks."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from gua.cli.main import COMMANDS as AGENT_COMMANDS
from gua.config import KEYS, MODEL_KEYS, describe_default
from gua.doctor.check import QUESTIONS
from gua.metrics.names import METRICS
from gua_fleet.cli.main import COMMANDS as FLEET_COMMANDS
from gua_fleet.config import KEYS as FLEET_KEYS
from gua_fleet.model import Outcome
from gua_fleet.outcomes import MEANINGS
from tests.screens.moment import ROOT


def commands() -> str:
    """Every command of both programs in one line."""
    lines = ["| command | does |", "| --- | --- |"]
    for program, table in (("gua-fleet", FLEET_COMMANDS), ("gua", AGENT_COMMANDS)):
        lines += [f"| `{program} {name}` | {summary} |" for name, (_, summary) in table.items()]
    return "\n".join(lines) + "\n"


def documents() -> str:
    """Every document of both programs in one line, as its schema has it."""
    lines = ['| `"schema"` | comes from, and holds |', "| --- | --- |"]
    for folder in (ROOT / "fleet/gua_fleet/schemas", ROOT / "agent/gua/schemas"):
        for path in sorted(folder.glob("*.schema.json")):
            name, _, number = path.name[: -len(".schema.json")].rpartition(".")
            lines.append(f"| `{name}/{number}` | {json.loads(path.read_text())['title']} |")
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
