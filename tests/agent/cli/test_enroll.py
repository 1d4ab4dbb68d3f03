"""`gua enroll` and `gua unenroll` against a real board."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gua.cli.main import main
from tests.agent.cloud.enrolled import AGENT_TOKEN, ONE_TIME, write_enrolment
from tests.agent.running import PATIENCE_S, command, environment
from tests.board import Board, Misdeed, running_board


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Board]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GUA_DB", str(tmp_path / "gua.db"))
    monkeypatch.setenv("NO_PROXY", "*")
    with running_board() as running:
        running.one_time.add(ONE_TIME)
        running.agents[AGENT_TOKEN] = "host-0"
        yield running


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text(f"{ONE_TIME}\n")
    return str(path)


def enroll(board: Board, *more: str) -> int:
    return main(["enroll", "--server-url", board.url, *more])


def test_a_one_time_token_becomes_this_hosts_own(
    board: Board, token_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert enroll(board, "--enrollment-token-file", token_file, "--hostname", "node-7") == 0
    file = tmp_path / "cloud.json"
    kept = json.loads(file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (kept["serverUrl"], kept["hostId"], kept["displayName"]) == (board.url, "host-1", "node-7")
    assert board.agents[kept["agentToken"]] == "host-1"
    assert board.claims[0]["hostname"] == "node-7"
    printed = capsys.readouterr()
    assert "node-7" in printed.out
    assert kept["agentToken"] not in printed.out + printed.err
    assert not list(tmp_path.glob(".cloud.json*"))
    assert main(["status"]) == 3
    assert "board: none accepted since 2" in capsys.readouterr().out


def test_the_token_may_come_from_stdin(board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"  {ONE_TIME}\n"))
    assert enroll(board, "--enrollment-token-file", "-") == 0
    assert (tmp_path / "cloud.json").exists()


def test_a_token_on_the_command_line_works_and_is_warned_of(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    assert enroll(board, "--enrollment-token", ONE_TIME) == 0
    told = capsys.readouterr().err
    assert "`ps`" in told
    assert ONE_TIME not in told


def test_who_cannot_type_is_told_the_options(
    board: Board, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert enroll(board) == 2
    assert "--enrollment-token-file" in capsys.readouterr().err


@pytest.mark.processes
def test_a_token_that_is_typed_is_not_echoed(board: Board, tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    line = command("enroll", "--server-url", board.url)
    streams = {"stdin": end, "stdout": end, "stderr": end}
    environ = environment(tmp_path, NO_PROXY="*")
    process = subprocess.Popen(line, env=environ, start_new_session=True, **streams)
    os.close(end)
    seen = read_until(terminal, b"Enrolment token: ")
    os.write(terminal, f"{ONE_TIME}\n".encode())
    seen += read_until(terminal, b"enrolled with")
    process.wait(PATIENCE_S)
    os.close(terminal)
    assert ONE_TIME.encode() not in seen
    assert (tmp_path / "cloud.json").exists()


def read_until(terminal: int, end: bytes) -> bytes:
    """What the terminal shows up to these words."""
    seen = b""
    while end not in seen:
        assert select.select([terminal], [], [], PATIENCE_S)[0], f"waited in vain for {end!r}, saw {seen!r}"
        seen += os.read(terminal, 4096)
    return seen


@pytest.mark.parametrize("text", ["", "   \n", "two words", "gua_\x00", "x" * 8000])
def test_what_is_no_token_is_not_sent_and_not_shown(
    board: Board, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "token").write_text(text)
    assert enroll(board, "--enrollment-token-file", str(tmp_path / "token")) == 2
    assert board.paths == []
    assert "two words" not in capsys.readouterr().err


def test_a_used_token_is_refused_with_the_boards_words_but_never_the_token(
    board: Board, token_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board.one_time.clear()
    assert enroll(board, "--enrollment-token-file", token_file) == 1
    told = capsys.readouterr().err
    assert "HTTP 401: enrollment token (token) is not known, or was used" in told
    assert not (tmp_path / "cloud.json").exists()


def test_a_second_time_needs_force(
    board: Board, token_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write_enrolment(tmp_path / "cloud.json", board.url).read_text()
    assert enroll(board, "--enrollment-token-file", token_file) == 2
    assert "--force" in capsys.readouterr().err
    assert (board.paths, (tmp_path / "cloud.json").read_text()) == ([], before)
    assert enroll(board, "--enrollment-token-file", token_file, "--force") == 0
    assert (tmp_path / "cloud.json").read_text() != before


def test_a_damaged_enrolment_counts_as_one(board: Board, token_file: str, tmp_path: Path) -> None:
    (tmp_path / "cloud.json").write_text('{"serverUrl": "ht')
    assert enroll(board, "--enrollment-token-file", token_file) == 2
    assert enroll(board, "--enrollment-token-file", token_file, "--force") == 0


def test_where_nothing_can_be_kept_the_token_is_not_used(board: Board, token_file: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = tmp_path / "file" / "cloud.json"
    assert enroll(board, "--enrollment-token-file", token_file, "--config", str(config)) == 1
    assert board.one_time == {ONE_TIME}


def test_a_claim_that_cannot_be_kept_says_that_the_token_is_used_up(
    board: Board, token_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "cloud.json"

    def into_the_way() -> None:
        config.mkdir()
        (config / "x").touch()

    board.next_misdeed = into_the_way  # between the claim's request and its answer
    assert enroll(board, "--enrollment-token-file", token_file) == 1
    told = capsys.readouterr().err
    assert "used up" in told
    assert not list(tmp_path.glob(".cloud.json*"))


def test_an_answer_that_is_no_claim_is_refused(
    board: Board, token_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board.answer = lambda *request: (201, {"hostId": "host-1", "displayName": "", "agentToken": "secret\nsecret"})  # type: ignore[method-assign]
    assert enroll(board, "--enrollment-token-file", token_file) == 1
    told = capsys.readouterr().err
    assert "displayName" in told
    assert "secret" not in told
    assert not (tmp_path / "cloud.json").exists()


@pytest.mark.parametrize("misdeed", [Misdeed.LOGIN_PAGE, Misdeed.REDIRECT, Misdeed.BROKEN, Misdeed.RESET])
def test_a_board_that_misbehaves_enrols_nobody(
    board: Board, token_file: str, tmp_path: Path, misdeed: Misdeed, capsys: pytest.CaptureFixture[str]
) -> None:
    board.misdeed = misdeed
    assert enroll(board, "--enrollment-token-file", token_file) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 2  # the database, and the failure
    assert ("used up" in told) == (misdeed is Misdeed.RESET)  # without an answer it may have been
    assert ONE_TIME not in told
    assert not (tmp_path / "cloud.json").exists()
    assert len(board.paths) == 1


def test_the_check_changes_nothing(board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["enroll", "--check"]) == 2
    assert enroll(board, "--check") == 0
    file = write_enrolment(tmp_path / "cloud.json", board.url)
    assert main(["enroll", "--check"]) == 0
    assert (board.taken, board.claims, board.violations) == ([], [], [])
    del board.agents[AGENT_TOKEN]
    assert main(["enroll", "--check"]) == 1
    assert "refuses this host's token (HTTP 401: unknown token (token))" in capsys.readouterr().err
    assert file.exists()


def test_unenrolling_forgets_the_token_and_may_be_repeated(board: Board, tmp_path: Path) -> None:
    file = write_enrolment(tmp_path / "cloud.json", board.url)
    assert main(["sync-once", "--fake"]) == 0
    assert (tmp_path / "board.json").exists()
    assert main(["unenroll"]) == 0
    assert not file.exists()
    assert not (tmp_path / "board.json").exists()
    assert main(["unenroll"]) == 0


def test_the_enrolment_lies_where_config_or_the_environment_say(
    board: Board, token_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUA_CONFIG", str(tmp_path / "by-environment.json"))
    assert enroll(board, "--enrollment-token-file", token_file) == 0
    assert (tmp_path / "by-environment.json").exists()
    board.one_time.add(ONE_TIME)
    assert enroll(board, "--enrollment-token-file", token_file, "--config", str(tmp_path / "named.json")) == 0
    assert (tmp_path / "named.json").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_keeps_it_for_the_owner_of_the_database(board: Board, token_file: str, tmp_path: Path) -> None:
    """Where root alone may write, as in /etc, the daemon's user could not read a file of root's."""
    history = tmp_path / "history"
    history.mkdir()
    os.chown(history, 65534, 65534)
    named = tmp_path / "etc" / "cloud.json"
    words = ("--enrollment-token-file", token_file, "--config", str(named), "--db", str(history / "gua.db"))
    assert enroll(board, *words) == 0
    assert (named.stat().st_uid, stat.S_IMODE(named.stat().st_mode)) == (65534, 0o600)
    begun = history / "board.json"
    assert (begun.stat().st_uid, stat.S_IMODE(begun.stat().st_mode)) == (65534, 0o640)
