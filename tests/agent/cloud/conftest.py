"""Boards and enrolments for the tests of the cloud."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gua.cloud.config import CloudConfig
from gua.cloud.token import Token
from tests.agent.cloud.enrolled import AGENT_TOKEN
from tests.board import Board, running_board


@pytest.fixture
def board() -> Iterator[Board]:
    """A well-behaved board that knows AGENT_TOKEN."""
    with running_board() as running:
        running.agents[AGENT_TOKEN] = "host-1"
        yield running


@pytest.fixture
def enrolment(board: Board) -> CloudConfig:
    return CloudConfig(board.url, "host-1", "node-1", Token(AGENT_TOKEN), "gua_agent")


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine's own proxies, authorities and passwords."""
    names = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
    for name in [*names, *map(str.upper, names), "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
