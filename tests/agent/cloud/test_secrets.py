"""No token in anything that a person, a log or a file of ours could hold, however a board provokes it."""

from __future__ import annotations

import io
import json
import logging
import sys
import traceback
from pathlib import Path

import pytest

from gua.cli.main import main
from gua.clock import SystemClock
from gua.cloud.client import BoardClient
from gua.cloud.config import CloudConfig
from gua.cloud.push import Pusher
from gua.cloud.sender import StateSender
from gua.cloud.token import Token
from gua.errors import BoardFailed
from tests.agent.cloud.enrolled import AGENT_TOKEN, ONE_TIME, write_enrolment
from tests.agent.running import PATIENCE_S
from tests.agent.store.ticks import MONDAY, card, tick
from tests.board import Board, Misdeed

STATE = tick(MONDAY, card())
SECRETS = (AGENT_TOKEN, ONE_TIME)
# Boards that answer at once, and quote in their refusal what they were sent.
_PATIENT = (Misdeed.SLOW, Misdeed.SILENCE, Misdeed.DRIBBLED_HEADER, Misdeed.DRIBBLED_BODY)
QUICK = [misdeed for misdeed in Misdeed if misdeed not in _PATIENT]


def leaks(text: str) -> list[str]:
    """Parts of the tokens, longer than what the contract lets be shown."""
    parts = [secret[at : at + 12] for secret in SECRETS for at in range(len(secret) - 11)]
    return [part for part in parts if part in text]


def test_the_search_finds_what_it_looks_for() -> None:
    assert leaks(f"Bearer {AGENT_TOKEN}")
    assert not leaks("Bearer Token(hidden)")


@pytest.mark.parametrize("misdeed", QUICK, ids=lambda misdeed: misdeed.name)
def test_no_log_and_no_exception_has_it(
    board: Board, enrolment: CloudConfig, misdeed: Misdeed, caplog: pytest.LogCaptureFixture
) -> None:
    """With every library's log at its most talkative, and the exception with all that it came from."""
    caplog.set_level(logging.DEBUG)
    board.misdeed, board.detail = misdeed, f"%s {AGENT_TOKEN} {ONE_TIME}"
    client = BoardClient(board.url)
    for attempt in (
        lambda: client.push({}, enrolment.agent_token),
        lambda: client.claim(Token(ONE_TIME), {"hostname": "node-1"}),
    ):
        with pytest.raises(BoardFailed) as caught:
            attempt()
        own = (AGENT_TOKEN, ONE_TIME) if len(board.paths) == 1 else (ONE_TIME, AGENT_TOKEN)
        text = "".join(traceback.format_exception(caught.type, caught.value, caught.tb)) + repr(caught.value)
        # A client knows one token: that the board quotes another one is beyond it
        assert not leaks(text.replace(own[1], ""))
    assert not leaks(caplog.text)


def test_the_daemons_log_has_it_not(board: Board, enrolment: CloudConfig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    sender = StateSender(enrolment, BoardClient(board.url), logging.getLogger("gua").warning)
    for board.misdeed in (None, *QUICK):
        pusher = Pusher(sender, SystemClock(), 0.001)
        pusher.offer(STATE)
        assert pusher.close(PATIENCE_S)
        assert not leaks(repr(vars(pusher)))
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) >= len(QUICK)
    assert not leaks(caplog.text + repr(vars(sender)) + repr(enrolment))


@pytest.mark.parametrize("misdeed", [None, *QUICK], ids=lambda misdeed: "none" if misdeed is None else misdeed.name)
def test_no_command_prints_or_stores_it(
    board: Board,
    tmp_path: Path,
    misdeed: Misdeed,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("GUA_DB", str(tmp_path / "gua.db"))
    monkeypatch.setattr(sys, "stdin", io.StringIO(ONE_TIME))
    write_enrolment(tmp_path / "cloud.json", board.url, 0o644)
    board.one_time.add(ONE_TIME)
    board.misdeed = misdeed
    main(["sync-once", "--fake", "--json"])
    main(["enroll", "--check"])
    main(["enroll", "--server-url", board.url, "--enrollment-token-file", "-", "--force"])
    main(["sync-once", "--fake"])
    main(["unenroll"])
    issued = list(board.agents)[-1]
    printed = capfd.readouterr()
    text = printed.out + printed.err + caplog.text
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("gua.db*"))
    assert len(stored) > 1000
    assert issued not in text
    assert not leaks(text + stored.decode("latin-1"))


@pytest.mark.parametrize("text", [f'{{"agentToken": "{AGENT_TOKEN}"', json.dumps({"agentToken": AGENT_TOKEN + "\n"})])
def test_a_damaged_file_is_not_quoted(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GUA_DB", str(tmp_path / "gua.db"))
    (tmp_path / "cloud.json").write_text(text)
    for words in (["sync-once", "--fake"], ["enroll", "--check"]):
        assert main(words) == 2
    assert not leaks(capsys.readouterr().err)
