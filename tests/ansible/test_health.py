"""The verdict over an agent that was just started: when it stands, and when the old one comes back."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "ansible" / "roles" / "gua_agent" / "files" / "health.py"
_spec = importlib.util.spec_from_file_location("health", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
health = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(health)

RUNNING = {"ActiveState": "active", "SubState": "running", "MainPID": "7", "NRestarts": "0"}
STARTED = "2026-03-01T10:00:00"


def checks(
    *failed: str, tick: str | None = "ok", at: str = "2026-03-01T10:00:05.250Z", **daemon: Any
) -> dict[str, Any]:
    """What the doctor says of a host where the checks `failed` fail."""
    details = {"running": True, "paused_since": None, "last_tick_at": at, "last_tick_status": tick, **daemon}
    bad = {name: {"id": name, "status": "fail", "summary": "broken", "cure": None, "details": {}} for name in failed}
    good = {"id": "daemon", "status": "ok", "summary": "last tick", "cure": None, "details": details}
    return {"daemon": good, **bad}


def judge(said: dict[str, Any], unit: dict[str, str] = RUNNING, *, driver: bool = True, version: str = "1.2") -> str:
    options = {"version": "1.2", "since": STARTED, "driver": driver}
    return str(health.judge(unit, said, "no answer", version, options))


def test_a_good_sampling_after_the_start_is_well() -> None:
    assert judge(checks()) == ""


@pytest.mark.parametrize("tick", ["error", "unresponsive", None])
def test_no_good_sampling_is_not_well_and_says_what_the_doctor_found(tick: str | None) -> None:
    assert judge(checks("nvml", tick=tick)) == "no good sampling came; nvml: broken"


def test_a_sampling_of_the_daemon_before_proves_nothing() -> None:
    assert judge(checks(at="2026-03-01T09:59:59.900Z")) == "no good sampling came"


def test_a_lost_card_is_no_reason_to_go_back() -> None:
    assert judge(checks("nvml", "pci", tick="partial")) == ""
    assert judge(checks("nvml")) == "nvml: broken"


def test_without_a_driver_the_agent_need_not_sample_but_must_run() -> None:
    assert judge(checks("nvml", "device_files", tick="error"), driver=False) == ""
    assert judge(checks(tick=None, running=False), driver=False) == "last tick"
    assert judge(checks("database", tick="error"), driver=False) == "database: broken"


def test_a_pause_is_respected() -> None:
    assert judge(checks(tick=None, paused_since="2026-03-01T08:00:00Z")) == ""


def test_unit_version_and_a_silent_doctor_are_reasons() -> None:
    assert judge(checks(), {**RUNNING, "ActiveState": "activating"}) == "the unit is activating"
    assert judge(checks(), {}) == "the unit is not known to systemd"
    assert judge(checks(), version="1.1") == "it is version 1.1, not 1.2"
    assert judge({}) == "no answer"


def test_waiting_ends_when_systemd_starts_it_again() -> None:
    assert health.gave_up({"ActiveState": "activating", "SubState": "auto-restart"})
    assert health.gave_up({"ActiveState": "failed", "SubState": "failed"})
    assert not health.gave_up({"ActiveState": "activating", "SubState": "start"})


@pytest.mark.parametrize(
    ("age_s", "words"),
    [
        (None, "last accepted not known"),
        (0.4, "last accepted 0 s ago"),
        (40.2, "last accepted 40 s ago"),
        (119.0, "last accepted 119 s ago"),
        (3 * 3600 + 60, "last accepted 3 h ago"),
        (9 * 86400.0, "last accepted 9 d ago"),
        (-600.0, "last accepted 10 min ahead of the clock"),
    ],
)
def test_what_the_board_took_in_a_few_words(age_s: float | None, words: str) -> None:
    assert health.describe_board({"last_accepted_age_s": age_s}) == words


def test_none_taken_is_told_with_since_when_that_is_known() -> None:
    board = {"last_accepted_age_s": None, "none_since": "2026-03-01T08:00:00Z"}
    assert health.describe_board(board) == "none accepted since 2026-03-01T08:00:00Z"


def test_a_board_that_refuses_is_told_beside_an_age_that_is_still_young() -> None:
    board = {"last_accepted_age_s": 40.0, "failing_since": "2026-03-01T08:00:00Z"}
    assert health.describe_board(board) == "last accepted 40 s ago, failing since 2026-03-01T08:00:00Z"


def test_a_host_that_is_not_enrolled_or_an_agent_that_does_not_tell_has_no_words_on_a_board() -> None:
    assert health.describe_board(None) == ""
    assert health.describe_board({"of": "another agent"}) == "last accepted not known"


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"enrolled": True, "board": {"last_accepted_age_s": 40.0}}, (True, "last accepted 40 s ago")),
        ({"enrolled": True}, (True, "")),
        ({"enrolled": False}, (False, "")),
    ],
)
def test_the_answer_has_what_the_doctor_found_of_the_board(
    tmp_path: Path, details: dict[str, Any], expected: tuple[bool, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor and systemd are programs here, which say what they are to say."""
    cloud = {"id": "cloud", "status": "ok", "summary": "enrolled", "cure": None, "details": details}
    said = {"checks": [*checks().values(), cloud]}
    says(tmp_path / "runuser", json.dumps(said))
    says(tmp_path / "systemctl", "\n".join(f"{name}={value}" for name, value in RUNNING.items()))
    says(tmp_path / "gua", "gua 1.2")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    asked = {
        "unit": "gua-agent.service",
        "environment": {},
        "gua": str(tmp_path / "gua"),
        "config": "c",
        "database": "d",
    }
    options = {**asked, "version": "1.2", "since": STARTED, "driver": True, "timeout_s": 0, "settle_s": 0}
    told = health.examine(options)
    assert (told["healthy"], told["enrolled"], told["accepted"]) == (True, *expected)
    assert told["board"] == details.get("board")


def says(program: Path, text: str) -> None:
    """A program that prints the text, whatever it is asked."""
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    program.chmod(0o755)
