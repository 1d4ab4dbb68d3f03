"""`gua daemon --cloud` against a real board, from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.cloud.enrolled import AGENT_TOKEN, write_enrolment
from tests.agent.running import add_pci_card, run_gua, running_daemon, tick_statuses, wait_until
from tests.board import Board, Misdeed, running_board
from tests.nvml_stub import Card, Error, Scene

pytestmark = pytest.mark.processes

OUT_OF_THE_WAY = {"NO_PROXY": "*"}


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    with running_board() as running:
        running.agents[AGENT_TOKEN] = "host-1"
        yield running


def test_without_an_enrolment_it_does_not_start(tmp_path: Path) -> None:
    done = run_gua(tmp_path, "daemon", "--foreground", "--cloud", "--fake")
    assert done.returncode == 2
    assert "gua enroll" in done.stderr
    assert not (tmp_path / "gua.db").exists()


def test_what_is_stored_is_pushed_and_a_board_that_is_away_costs_no_tick(board: Board, tmp_path: Path) -> None:
    write_enrolment(tmp_path / "cloud.json", board.url)
    database = tmp_path / "gua.db"
    with running_daemon(tmp_path, "--cloud", "--fake", **OUT_OF_THE_WAY) as daemon:
        wait_until(lambda: len(board.taken) >= 2, "states")
        board.misdeed = Misdeed.SILENCE
        wait_until(lambda: len(board.paths) > len(board.taken), "the attempt that hangs")
        before = len(tick_statuses(database))
        wait_until(lambda: len(tick_statuses(database)) >= before + 5, "ticks meanwhile")
        board.misdeed = None
        board.ended.set()
        daemon.stop()
    assert daemon.process.returncode == 0
    assert set(tick_statuses(database)) == {"ok"}
    assert board.violations == []
    assert AGENT_TOKEN not in daemon.log()


def test_a_driver_that_goes_away_is_an_error_on_the_board(board: Board, tmp_path: Path, nvml_scene: Path) -> None:
    add_pci_card(tmp_path)
    write_enrolment(tmp_path / "cloud.json", board.url)
    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    with running_daemon(tmp_path, "--cloud", **OUT_OF_THE_WAY):
        wait_until(lambda: any(taken["collectionStatus"] == "ok" for taken in board.taken), "a healthy state")
        gone = (Error("nvmlInit", "DRIVER_NOT_LOADED"), Error("*", "UNINITIALIZED"))
        Scene(rules=gone, generation=1).save(nvml_scene)
        wait_until(lambda: board.taken[-1]["collectionStatus"] == "error", "the heartbeat")
        heartbeat = board.taken[-1]
        Scene(cards=(Card("GPU-a"),), generation=2).save(nvml_scene)
        wait_until(lambda: board.taken[-1]["collectionStatus"] == "ok", "the driver to be back")
    assert (heartbeat["gpus"], heartbeat["errors"]) == ([], ["nvml_init_failed"])
    assert board.violations == []
