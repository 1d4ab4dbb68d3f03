"""`gua holds`, `gua explain` and `gua top` as people and controllers run them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from gua.cli.main import main
from gua.clock import SystemClock
from gua.demo.history import fill
from gua.demo.profile import DEMO_HOSTS
from gua.demo.recording import open_demo_writer
from gua.frames import unwrap_document
from gua.schemas import load_schema
from tests.agent.running import run_gua

pytestmark = pytest.mark.processes

NONCE = "0123456789abcdef" * 2


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with six hours of the made-up host, ending now."""
    home, clock, profile = tmp_path_factory.mktemp("ledger"), SystemClock(), DEMO_HOSTS["demo"]
    with open_demo_writer(home / "gua.db", profile, clock) as writer:
        fill(writer, profile, since_ms=clock.now_ms() - 6 * 3_600_000, until_ms=clock.now_ms())
    return home


def shown(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_holds_and_explain_in_every_form(home: Path) -> None:
    framed = shown(run_gua(home, "holds", "--frame", NONCE, "--tz", "UTC"))
    holds = json.loads(unwrap_document(framed.encode(), NONCE))
    Draft202012Validator(load_schema("gua.holds.1")).validate(holds)
    assert holds["holds"]
    user = holds["holds"][0]["user"]
    assert shown(run_gua(home, "holds", "--format", "csv")).startswith("host,window_since,")
    assert shown(run_gua(home, "holds", "--format", "md", "--user", user)).startswith("# Who held the cards of demo")
    explained = json.loads(shown(run_gua(home, "explain", "--user", user, "--json")))
    Draft202012Validator(load_schema("gua.explain.1")).validate(explained)
    window = ("--since", "2026-01-01", "--until", holds["window"]["until"])  # else each would end at its own present
    report = json.loads(shown(run_gua(home, "report", "--user", user, "--json", *window)))
    again = json.loads(shown(run_gua(home, "explain", "--user", user, "--json", *window)))
    assert again["user"]["report"]["card_s"] == report["users"][0]["card_s"]
    assert "What was seen" in shown(run_gua(home, "explain", "--card", "0"))


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "--card", "99"),
        ("explain", "--user", "eve"),
        ("explain", "--card", "0", "--at", "soon"),
        ("explain", "--user", "eve", "--at", "1h"),
        ("holds", "--card", "99"),
        ("holds", "--min", "much"),
        ("top", "--interval", "1ms"),
    ],
)
def test_what_cannot_be_answered_is_one_line_with_status_2(
    home: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--db", str(home / "gua.db")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len([line for line in said.err.splitlines() if not line.startswith("gua: database")]) == 1


def test_top_without_a_daemon_on_a_host_without_cards_says_so(tmp_path: Path) -> None:
    done = run_gua(tmp_path, "top")
    assert done.returncode == 2
    assert "nothing to show; --fake shows a made-up host" in done.stderr
