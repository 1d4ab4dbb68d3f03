from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gua_fleet.probes.answer import Answer
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.connect import Connector
from gua_fleet.ssh.runner import AnswerRunner, Output
from tests.fleet.ssh.sshd import Keys, Sshd, host


@pytest.fixture
def attempt(sshd: Sshd, keys: Keys, tmp_path: Path) -> Iterator[Attempt]:
    known = tmp_path / "known_hosts"
    known.write_text(sshd.known_line())
    attempt = Attempt(host(sshd, keys, known, tmp_path / "gua"), 60)
    with contextlib.closing(attempt):
        yield attempt


def test_what_came_is_not_kept_behind_the_answer(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Output] = []

    class Noted(Output):
        def __init__(self, *words: Any) -> None:
            super().__init__(*words)
            made.append(self)

    monkeypatch.setattr("gua_fleet.ssh.runner.Output", Noted)
    answer = Connector(accept_new=False).ask(attempt, ["/bin/echo", "all"], cap_bytes=1000)
    assert answer == Answer(0, b"all\n", b"")
    assert [each.take() for each in made] == [b"", b""]


def test_a_command_that_ends_before_it_was_given_its_input_has_answered(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = AnswerRunner._request

    def ended_meanwhile(self: AnswerRunner, *words: str, **more: Any) -> None:
        request(self, *words, **more)
        while not self.channel.closed:
            time.sleep(0.01)

    monkeypatch.setattr(AnswerRunner, "_request", ended_meanwhile)
    answer = Connector(accept_new=False).ask(attempt, ["/bin/echo", "no sudo here"], cap_bytes=1000, stdin=b"sesame")
    assert answer == Answer(0, b"no sudo here\n", b"")
