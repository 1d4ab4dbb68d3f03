"""Which agents this gua-fleet can read, by the documents that they write: told before anything is changed.

An agent's documents are the schemas that it brings, so that of one which was never asked they are known as well. The
playbook runs `python -m gua_fleet.protocol`, gives on stdin what it saw of each host, and reads from stdout

    {"hosts": ["gpu01", "gpu02"], "seen": {"gpu01": {"current": RELEASE, "documents": "gua.report/1 gua.doctor/1 ..."}}}
    {"hosts": {"gpu01": {"readable": true, "summary": "...", "cure": null}, "gpu02": {...}}, "lines": ["gpu01: ..."]}

Without `current` there is no agent; a host that is not in `seen` did not answer. This needs nothing but the standard
library.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gua import __version__

# What our questions are answered with; a test compares it with the questions.
READS = (
    "gua.doctor/1",
    "gua.export-chunk/1",
    "gua.export/1",
    "gua.observation/1",
    "gua.report/1",
    "gua.status/1",
)
SCHEMAS = "gua/schemas"
_ENDING = ".schema.json"

_DOCUMENT = re.compile(r"(gua\.[a-z-]+)/([0-9]{1,6})")
_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,64}")
_THIS = f"this gua-fleet {__version__}"
_ONE_VERSION = "bring gua-fleet and the agent to one version"


@dataclass(frozen=True)
class Verdict:
    """readable: None where that is not known. summary, cure: one line each; cure None where there is nothing to do."""

    readable: bool | None
    summary: str
    cure: str | None = None

    def __str__(self) -> str:
        return self.summary + (f": {self.cure}" if self.cure else "")


NOT_KNOWN = Verdict(None, "not known: it did not answer", "ask again when it is there")


def judge(documents: Iterable[str] | None, version: str | None) -> Verdict:
    """Whether we can read an agent of this version that writes these documents (None: it does not tell)."""
    who = f"agent {version}" if version and _VERSION.fullmatch(version) else "its agent"
    if documents is None:
        return Verdict(None, f"not known: {who} does not tell which documents it writes", "upgrade the agent")
    written = _majors(documents)
    asked = [(name, int(major)) for name, major in (one.split("/") for one in READS)]
    others = [(name, major) for name, major in asked if major not in written.get(name, {major})]
    lacking = [f"{name}/{major}" for name, major in asked if name not in written]
    if others:
        got = [f"{name}/{max(written[name])}" for name, _ in others]  # a host may name any number of them
        ours = ", ".join(f"{name}/{major}" for name, major in others)
        return Verdict(False, f"{who} writes {', '.join(got)}; {_THIS} reads {ours}", _cure(others, written))
    if lacking:
        readable = len(lacking) < len(asked)
        return Verdict(readable, f"{who} writes no {', '.join(lacking)}, which {_THIS} asks for", "upgrade the agent")
    return Verdict(True, f"{who} is read by {_THIS}")


def _cure(others: Iterable[tuple[str, int]], written: Mapping[str, set[int]]) -> str:
    newer = {max(written[name]) > major for name, major in others}
    return _ONE_VERSION if len(newer) > 1 else "upgrade gua-fleet here" if True in newer else "upgrade the agent"


def _majors(documents: Iterable[str]) -> dict[str, set[int]]:
    """Name -> the major numbers in which it is written."""
    found: dict[str, set[int]] = {}
    for match in filter(None, map(_DOCUMENT.fullmatch, documents)):
        found.setdefault(match[1], set()).add(int(match[2]))
    return found


def wheel_documents(wheel: Path) -> list[str]:
    """What the agent in a wheel writes. Raises OSError, zipfile.BadZipFile, UnicodeDecodeError."""
    with zipfile.ZipFile(wheel) as archive:
        names = [PurePosixPath(name) for name in archive.namelist() if name.endswith(_ENDING)]
    return [to_document(path.name) for path in names if str(path.parent) == SCHEMAS]


def to_document(file: str) -> str:
    """The name of the document that a schema file describes: `gua.report/1` of `gua.report.1.schema.json`."""
    return "{0}/{2}".format(*file.removesuffix(_ENDING).rpartition("."))


def judge_hosts(hosts: Sequence[str], seen: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """As above; in `lines` the hosts of which the same is said stand together."""
    verdicts = {host: _judge_seen(seen.get(host)) for host in hosts}
    same: dict[Verdict, list[str]] = {}
    for host, verdict in verdicts.items():
        same.setdefault(verdict, []).append(host)
    lines = [f"{', '.join(names)}: {verdict}" for verdict, names in same.items()]
    return {"hosts": {host: asdict(verdict) for host, verdict in verdicts.items()}, "lines": lines}


def _judge_seen(facts: Mapping[str, str] | None) -> Verdict:
    if facts is None:
        return NOT_KNOWN
    if "current" not in facts:
        return Verdict(None, "there is no agent yet")
    documents = facts.get("documents")
    return judge(documents.split() if documents else None, facts["current"].split("-")[0])


if __name__ == "__main__":
    sys.stdout.write(json.dumps(judge_hosts(**json.load(sys.stdin))) + "\n")
