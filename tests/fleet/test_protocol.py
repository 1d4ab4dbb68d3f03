"""Which agents this gua-fleet can read, and what to do about the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gua import __version__, schemas
from gua.export.stream import CHUNK_SCHEMA
from gua.frames import wrap_document
from gua.report.document import SCHEMA as REPORT
from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.probes.answer import Answer
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.probes.pull import pull_probe
from gua_fleet.probes.status import STATUS_PROBE
from gua_fleet.probes.sync_once import SYNC_ONCE_PROBE
from gua_fleet.protocol import READS, judge, to_document, wheel_documents
from gua_fleet.view_doctor import verdict_of
from tests.fleet.ssh.sshd import REPOSITORY

THIS = f"this gua-fleet {__version__}"
NONCE = "0" * 32


def without(*names: str) -> list[str]:
    return [one for one in schemas.DOCUMENTS if one not in names]


def test_what_is_read_is_what_the_questions_are_answered_with() -> None:
    probes = (DOCTOR_PROBE, STATUS_PROBE, SYNC_ONCE_PROBE, pull_probe(0, rollups_only=False))
    assert set(READS) == {*(probe.schema for probe in probes), REPORT, CHUNK_SCHEMA}
    assert list(READS) == sorted(READS)


def test_this_agent_tells_every_schema_that_it_brings_and_is_read() -> None:
    files = {path.name for path in (REPOSITORY / "agent/gua/schemas").glob("*.schema.json")}
    assert set(schemas.DOCUMENTS) <= {to_document(name) for name in files}
    assert judge(schemas.DOCUMENTS, __version__).readable is True


@pytest.mark.parametrize(
    ("documents", "readable", "summary", "cure"),
    [
        (None, None, "not known: agent 9.1 does not tell which documents it writes", "upgrade the agent"),
        (
            [*without("gua.report/1"), "gua.report/2", "gua.new/1"],
            False,
            f"agent 9.1 writes gua.report/2; {THIS} reads gua.report/1",
            "upgrade gua-fleet here",
        ),
        (
            [*without("gua.report/1"), "gua.report/0"],
            False,
            f"agent 9.1 writes gua.report/0; {THIS} reads gua.report/1",
            "upgrade the agent",
        ),
        (
            [*without("gua.report/1", "gua.status/1"), "gua.report/2", "gua.status/0"],
            False,
            f"agent 9.1 writes gua.report/2, gua.status/0; {THIS} reads gua.report/1, gua.status/1",
            "bring gua-fleet and the agent to one version",
        ),
        # one that can be asked in both ways
        ([*without(), "gua.report/2"], True, f"agent 9.1 is read by {THIS}", None),
        (
            without("gua.status/1"),
            True,
            f"agent 9.1 writes no gua.status/1, which {THIS} asks for",
            "upgrade the agent",
        ),
        (
            ["gua.other/1"],
            False,
            f"agent 9.1 writes no {', '.join(READS)}, which {THIS} asks for",
            "upgrade the agent",
        ),
    ],
)
def test_what_is_said_of_an_agent(documents: list[str] | None, readable: bool | None, summary: str, cure: str) -> None:
    verdict = judge(documents, "9.1")
    assert (verdict.readable, verdict.summary, verdict.cure) == (readable, summary, cure)


def test_what_a_host_says_of_itself_is_not_shown_unless_it_is_a_version() -> None:
    assert judge(None, "1\x1b[2J").summary == "not known: its agent does not tell which documents it writes"
    assert judge(["gua.report/2\x1b", "gua.report/1" * 99], "1.0").readable is False


def test_a_host_that_names_very_many_documents_is_told_in_one_line() -> None:
    verdict = judge([f"gua.report/{number}" for number in range(2, 9000)], "1.0")
    assert verdict.summary == f"agent 1.0 writes gua.report/8999; {THIS} reads gua.report/1"


def test_a_host_that_did_not_answer_is_not_known_and_one_with_another_doctor_is() -> None:
    host = Host("a", "a")
    for outcome in (Outcome.UNREACHABLE, Outcome.AGENT_MISSING, Outcome.BAD_OUTPUT, Outcome.MAINTENANCE):
        assert verdict_of(HostResult(host, outcome, "no connection")).readable is None
    document = json.dumps({"schema": "gua.doctor/2"})
    reading = DOCTOR_PROBE.interpret(host, Answer(0, wrap_document(document, NONCE).encode(), b""), NONCE)
    verdict = verdict_of(HostResult(host, reading.outcome, reading.detail, other_major=reading.other_major))
    assert verdict.readable is False
    assert verdict.summary.startswith("answers with gua.doctor/2, this gua-fleet reads gua.doctor/1")


def test_what_an_agent_says_in_our_words_is_not_taken_for_what_we_found() -> None:
    told = "answers with gua.doctor/2, this gua-fleet reads gua.doctor/1"
    fake = HostResult(Host("a", "a"), Outcome.BAD_OUTPUT, told)  # as where a login banner says so
    assert verdict_of(fake).readable is None
    for name in ("gua.doctor/", "gua.doctor/two", "gua.doctor/2\x1b[2J", "gua.doctor/\u0662"):
        document = json.dumps({"schema": name})
        answer = Answer(0, wrap_document(document, NONCE).encode(), b"")
        assert DOCTOR_PROBE.interpret(Host("a", "a"), answer, NONCE).other_major is None


def test_a_wheel_tells_what_its_agent_writes(tmp_path: Path) -> None:
    wheel = tmp_path / "gua_fleet-9.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("gua/schemas/gua.report.2.schema.json", "gua_fleet/schemas/gua.fleet-report.1.schema.json"):
            archive.writestr(name, "{}")
    assert wheel_documents(wheel) == ["gua.report/2"]


def test_the_playbook_asks_with_the_standard_library_alone() -> None:
    read = {"current": "0.1.0-py311-1a2b3c4d", "documents": " ".join(READS), "gpu": "ok"}
    seen = {
        "a": read,
        "b": {**read, "documents": "gua.report/2 gua.doctor/1"},
        "c": {"current": "0.0.9-py39-1"},
        "d": {},
    }
    done = subprocess.run(
        [sys.executable, "-S", "-m", "gua_fleet.protocol"], capture_output=True, text=True,
        input=json.dumps({"hosts": ["a", "b", "c", "d", "e", "f"], "seen": {**seen, "f": read}}),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(REPOSITORY / part) for part in ("agent", "fleet"))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [verdict["readable"] for verdict in told["hosts"].values()] == [True, False, None, None, None, True]
    assert told["lines"] == [
        f"a, f: agent 0.1.0 is read by {THIS}",
        f"b: agent 0.1.0 writes gua.report/2; {THIS} reads gua.report/1: upgrade gua-fleet here",
        "c: not known: agent 0.0.9 does not tell which documents it writes: upgrade the agent",
        "d: there is no agent yet",
        "e: not known: it did not answer: ask again when it is there",
    ]
