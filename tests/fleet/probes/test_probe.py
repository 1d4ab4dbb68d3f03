from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from gua.frames import wrap_document
from gua_fleet.model import Host, Outcome
from gua_fleet.probes.answer import Answer
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.probes.probe import Probe, Reading
from gua_fleet.probes.report import report_probe
from gua_fleet.probes.sync_once import SYNC_ONCE_PROBE

NONCE = "0123456789abcdef" * 2
HOST = Host("n", "n")
DOCTOR = {"schema": "gua.doctor/1", "generated_at": "2026-03-02T12:00:10Z", "ready": False, "checks": []}
BECOMES = Host("n", "n", become=True)


def _framed(document: Any, exit_status: int = 0) -> Answer:
    return Answer(exit_status, wrap_document(json.dumps(document), NONCE).encode(), b"")


def _read(answer: Answer, probe: Probe = DOCTOR_PROBE, host: Host = HOST) -> Reading:
    return probe.interpret(host, answer, NONCE)


def test_report_probe_sends_absolute_times_and_the_zone() -> None:
    probe = report_probe(since_ms=0, until_ms=1_500, tz="Europe/Prague")
    assert probe.argv(NONCE) == (
        *("report", "--format", "json", "--since", "1970-01-01T00:00:00Z", "--until", "1970-01-01T00:00:01.500Z"),
        *("--tz", "Europe/Prague", "--frame", NONCE),
    )


def test_sync_once_probe_pushes_where_enrolled_and_writes() -> None:
    assert SYNC_ONCE_PROBE.argv(NONCE)[:4] == ("sync-once", "--push", "auto", "--json")
    assert SYNC_ONCE_PROBE.writes
    assert not DOCTOR_PROBE.writes


@pytest.mark.parametrize("exit_status", [0, 1])
def test_interpret_valid_document_is_ok_whatever_the_exit_status(exit_status: int) -> None:
    document = {**DOCTOR, "unheard": 1}
    assert _read(_framed(document, exit_status)) == Reading(Outcome.OK, None, document)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("database_missing", Outcome.NO_HISTORY),
        ("no_gpu", Outcome.NO_GPU),
        ("usage", Outcome.AGENT_ERROR),
        ("unheard", Outcome.AGENT_ERROR),
    ],
)
def test_interpret_agents_own_error_keeps_its_message(code: str, outcome: Outcome) -> None:
    document = {"schema": "gua.error/1", "code": code, "message": "the reason", "exit_status": 2}
    assert _read(_framed(document, 2)) == Reading(outcome, "the reason")


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"schema": "gua.doctor/2", "host": {"agent_version": "3.0"}}, "its agent is version 3.0"),
        ({"schema": "gua.doctor/2"}, "this gua-fleet reads gua.doctor/1"),
        ({"schema": "gua.report/1", "host": "odd"}, "instead of gua.doctor/1"),
        ({}, "instead of gua.doctor/1"),
        ([1], "instead of gua.doctor/1"),
    ],
)
def test_interpret_other_schema_is_bad_output_naming_both(document: Any, words: str) -> None:
    reading = _read(_framed(document))
    assert reading.outcome is Outcome.BAD_OUTPUT
    assert words in (reading.detail or "")


def test_interpret_frame_of_another_nonce_is_no_frame() -> None:
    answer = Answer(0, wrap_document('{"schema": "gua.doctor/1"}', "f" * 32).encode(), b"")
    assert _read(answer).outcome is Outcome.BAD_OUTPUT


def test_interpret_frame_that_is_not_json_is_bad_output() -> None:
    answer = Answer(0, wrap_document("{", NONCE).encode(), b"")
    assert _read(answer) == Reading(Outcome.BAD_OUTPUT, "the agent's document is not JSON")


@pytest.mark.parametrize(
    ("exit_status", "stderr", "outcome", "words"),
    [
        (1, b"sudo: a password is required\n", Outcome.NEEDS_PRIVILEGE, "a password is required"),
        (1, b"sudo: unknown user gua\n", Outcome.NEEDS_PRIVILEGE, "unknown user"),
        (1, b"alice neni v souboru sudoers.\n", Outcome.NEEDS_PRIVILEGE, "alice"),
        (127, b"sh: 1: exec: sudo: not found\n", Outcome.NEEDS_PRIVILEGE, "not found"),
        (1, b"gua: this is a defect of ours\n", Outcome.AGENT_ERROR, "defect"),
        (127, b"no agent at /opt/gua/current/bin/gua or on PATH", Outcome.AGENT_MISSING, "/opt/gua/current/bin/gua"),
        (127, b"sh: 1: exec: timeout: not found", Outcome.AGENT_MISSING, "coreutils"),
        (126, b"Permission denied", Outcome.AGENT_MISSING, "cannot be executed: Permission denied"),
        (124, b"", Outcome.TIMEOUT, "in time"),
        (-1, b"", Outcome.AGENT_ERROR, "killed"),
        (3, b"odd\x1b[2J", Outcome.AGENT_ERROR, "exit status 3: odd\\x1b[2J"),
        (0, b"", Outcome.BAD_OUTPUT, "no frame"),
    ],
)
def test_interpret_answer_without_a_frame_says_who_spoke(
    exit_status: int, stderr: bytes, outcome: Outcome, words: str
) -> None:
    reading = _read(Answer(exit_status, b"", stderr), SYNC_ONCE_PROBE, BECOMES)
    assert reading.outcome is outcome
    assert words in (reading.detail or "")


def test_interpret_refused_sudo_is_only_suspected_where_sudo_was_used() -> None:
    reading = _read(Answer(1, b"", b"some words"), SYNC_ONCE_PROBE, HOST)
    assert reading.outcome is Outcome.AGENT_ERROR


def test_interpret_flood_of_messages_costs_next_to_no_memory() -> None:
    flood = Answer(-1, b"", b"error\n" * 500_000 + b"the last \xff one", capped=True)
    tracemalloc.start()
    try:
        reading = _read(flood)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (reading.detail or "").startswith("the answer is too long")
    assert peak_bytes < 1_000_000
    killed = _read(Answer(137, b"", flood.stderr))
    assert (killed.detail or "").endswith(": the last \ufffd one")
