"""An agent that others wrote, against our board, and our agent with the enrolment that one made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gua.cli.main import main
from tests.agent.cloud.enrolled import ONE_TIME
from tests.board import Board, Misdeed, running_board
from tests.board.predecessor import Predecessor, PredecessorUnavailable, find_predecessor

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def predecessor() -> Predecessor:
    try:
        return find_predecessor()
    except PredecessorUnavailable as exc:
        pytest.skip(f"gpu-usage-audit: {exc}")


@pytest.fixture
def board() -> Iterator[Board]:
    with running_board() as running:
        running.one_time.add(ONE_TIME)
        yield running


def test_it_enrols_and_syncs_and_ours_goes_on_with_its_enrolment(
    predecessor: Predecessor, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enrolled = predecessor.run(tmp_path, "enroll", "--server-url", board.url, "--enrollment-token", ONE_TIME)
    assert enrolled.returncode == 0, enrolled.stderr
    synced = predecessor.run(tmp_path, "sync-once", "--fake")
    assert synced.returncode == 0, synced.stderr
    assert (len(board.taken), board.violations) == (1, [])
    assert board.taken[0]["host"]["agentVersion"] == "1.8.0"
    for name, value in {"HOME": str(tmp_path), "GUA_DB": str(tmp_path / ".gua/ours.db"), "NO_PROXY": "*"}.items():
        monkeypatch.setenv(name, value)
    assert main(["sync-once", "--fake"]) == 0
    assert len(board.taken) == 2
    assert board.taken[1].keys() == board.taken[0].keys()
    ours, theirs = (max(taken["gpus"], key=len) for taken in reversed(board.taken))  # one whose state is known
    assert ours.keys() == theirs.keys()


def test_it_fails_as_it_should_on_a_board_that_refuses(predecessor: Predecessor, board: Board, tmp_path: Path) -> None:
    board.one_time.clear()
    refused = predecessor.run(tmp_path, "enroll", "--server-url", board.url, "--enrollment-token", ONE_TIME)
    assert (refused.returncode, "HTTP 401" in refused.stderr) == (1, True)
    board.one_time.add(ONE_TIME)
    predecessor.run(tmp_path, "enroll", "--server-url", board.url, "--enrollment-token", ONE_TIME)
    board.misdeed = Misdeed.BROKEN
    failed = predecessor.run(tmp_path, "sync-once", "--fake")
    assert (failed.returncode, board.taken) == (1, [])
