from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gua_fleet.model import Host
from gua_fleet.probes.remote_command import agent_argv, command_line, ending_argv, quote

ECHO = (sys.executable, "-c", "import sys, json; print(json.dumps(sys.argv[1:]))")
HARD = ("plain", "two words", "it's", 'a "quote"', "back\\slash", "bang!now", "$HOME", "`id`", "~root", "=ls", "*", "")
SHELLS = ("sh", "dash", "bash", "zsh", "fish", "csh", "tcsh")


def _split_by(shell: str, line: str) -> list[str]:
    done = subprocess.run([shell, "-c", line], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def _environment(path: str, home: Path) -> dict[str, str]:
    """fish complains where it has no home of its own."""
    return {"PATH": path, "HOME": str(home)}


@pytest.mark.parametrize("shell", SHELLS)
def test_command_line_every_login_shell_splits_it_alike(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    assert _split_by(shell, command_line((*ECHO, *HARD))) == list(HARD)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" ")), max_size=5))
def test_command_line_any_printable_text_survives_sh(words: list[str]) -> None:
    assert _split_by("sh", command_line((*ECHO, *words))) == words


@pytest.mark.parametrize("text", ["a\nb", "\x1b[2J", "\0"])
def test_quote_control_characters_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no shell quoting"):
        quote(text)


def test_quote_plain_words_stay_readable() -> None:
    assert command_line(["/opt/gua/current/bin/gua", "report", "--since", "2026-01-01T00:00:00Z"]) == (
        "/opt/gua/current/bin/gua report --since 2026-01-01T00:00:00Z"
    )


def test_agent_argv_with_a_command_is_bounded_and_plain() -> None:
    host = Host("n", "n", gua_command=("/usr/bin/python3", "-m", "gua"))
    assert agent_argv(host, ["doctor"], limit_s=19.2, as_agent_user=False) == (
        *("timeout", "-k", "2", "20"),
        *("/usr/bin/python3", "-m", "gua", "doctor"),
    )


def test_agent_argv_as_the_agents_user_never_asks_for_a_password() -> None:
    argv = agent_argv(Host("n", "n", gua_command=("/x/gua",)), ["sync-once"], limit_s=5, as_agent_user=True)
    assert argv == ("sudo", "-n", "-u", "gua", "timeout", "-k", "2", "5", "/x/gua", "sync-once")


@pytest.mark.parametrize("shell", SHELLS)
def test_agent_argv_default_search_finds_gua_on_path(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    if Path("/opt/gua/current/bin/gua").exists():
        pytest.skip("an agent is deployed on this machine")
    (tmp_path / "gua").write_text('#!/bin/sh\necho "asked: $*"\n')
    (tmp_path / "gua").chmod(0o755)
    line = command_line(agent_argv(Host("n", "n"), ["doctor", "--json", "it's"], limit_s=5, as_agent_user=False))
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run([shell, "-c", line], capture_output=True, text=True, env=_environment(path, tmp_path))
    assert (done.returncode, done.stdout) == (0, "asked: doctor --json it's\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_agent_argv_default_search_without_an_agent_exits_127(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    if Path("/opt/gua/current/bin/gua").exists():
        pytest.skip("an agent is deployed on this machine")
    line = command_line(agent_argv(Host("n", "n"), ["doctor"], limit_s=5, as_agent_user=False))
    done = subprocess.run(
        [shell, "-c", line], capture_output=True, text=True, env=_environment("/usr/bin:/bin", tmp_path)
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (127, "no agent at /opt/gua/current/bin/gua or on PATH")


def test_ending_argv_names_the_command_by_its_nonce_and_neither_itself_nor_another() -> None:
    nonce = secrets.token_hex(16)
    argv = agent_argv(Host("n", "n"), ("doctor", "--frame", nonce), limit_s=5, as_agent_user=False)
    ending = ending_argv(command_line(argv))
    assert ending is not None
    assert ending[:3] == ("pkill", "-TERM", "-f")
    assert re.search(ending[3], " ".join(argv))
    assert not re.search(ending[3], command_line(ending))
    assert not re.search(ending[3], f"gua doctor --frame {secrets.token_hex(16)}")


@pytest.mark.parametrize("command", ["", "gua doctor", "gua doctor --frame .*", "gua doctor --frame " + "A" * 32])
def test_ending_argv_of_a_command_without_a_nonce_ends_nothing(command: str) -> None:
    assert ending_argv(command) is None
