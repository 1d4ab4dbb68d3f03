"""`gua daemon --cloud` against a real board, from the command line."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gua.clock import SystemClock
from gua.units import parse_time_ms
from tests.agent.cloud.enrolled import AGENT_TOKEN, write_enrolment
from tests.agent.running import MADE_UP, add_pci_card, run_gua, running_daemon, tick_statuses, wait_until
from tests.board import Board, Misdeed, running_board
from tests.nvml_stub import Card, Error, Scene

pytestmark = pytest.mark.processes

NEXT_TOKEN = "gua_agent_Wn5vBc3MtK8sHd2g"
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
    assert set(tick_statuses(database)) <= MADE_UP
    assert board.violations == []
    assert AGENT_TOKEN not in daemon.log()


def test_what_the_board_took_is_in_the_status_and_the_metrics_until_the_host_is_unenrolled(
    board: Board, tmp_path: Path
) -> None:
    def told() -> Any:
        return json.loads(run_gua(tmp_path, "status", "--json").stdout)["board"]

    def measured() -> str:
        return (tmp_path / "gua.prom").read_text() if (tmp_path / "gua.prom").exists() else ""

    write_enrolment(tmp_path / "cloud.json", board.url)
    arguments = ("--cloud", "--fake", "--textfile", str(tmp_path))
    with running_daemon(tmp_path, *arguments, **OUT_OF_THE_WAY) as daemon:
        wait_until(lambda: told()["last_accepted_at"] is not None, "a state to be told as taken")
        assert told()["last_accepted_age_s"] >= 0
        wait_until(lambda: "\ngua_board_last_accepted_timestamp_seconds " in measured(), "the metric")
        assert run_gua(tmp_path, "status").stdout.splitlines()[1].startswith("board: last accepted ")
        board.misdeed = Misdeed.BROKEN
        wait_until(lambda: told()["failing_since"] is not None, "the failing")
        assert "HTTP 500" in told()["reason"]
        wait_until(lambda: "\ngua_board_failing_since_timestamp_seconds " in measured(), "the metric of it")
        board.misdeed = None
        wait_until(lambda: told()["failing_since"] is None, "the end of the failing")
        assert run_gua(tmp_path, "unenroll").returncode == 0
        assert told() is None  # though the daemon pushes on until it is reloaded
        wait_until(lambda: "gua_board_" not in measured(), "the metrics to go")
        daemon.stop()
    assert daemon.process.returncode == 0


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


def test_an_enrolment_that_is_renewed_is_taken_as_soon_as_the_old_one_is_refused(board: Board, tmp_path: Path) -> None:
    """What the log asks for, `gua enroll --force`, is all there is to do."""
    write_enrolment(tmp_path / "cloud.json", board.url)
    with running_daemon(tmp_path, "--cloud", "--fake", **OUT_OF_THE_WAY) as daemon:
        wait_until(lambda: board.taken != [], "a state")
        write_enrolment(tmp_path / "cloud.json", board.url, agentToken=NEXT_TOKEN)
        board.agents[NEXT_TOKEN] = "host-2"
        del board.agents[AGENT_TOKEN]
        before = len(board.taken)
        wait_until(lambda: len(board.taken) > before, "a state under the new token")
    assert board.paths[-1][1] == f"Bearer {NEXT_TOKEN}"
    assert "enrolled anew" in daemon.log()
    assert AGENT_TOKEN not in daemon.log()
    assert NEXT_TOKEN not in daemon.log()


def test_after_unenrolling_a_reload_ends_the_pushing_and_nothing_else(board: Board, tmp_path: Path) -> None:
    write_enrolment(tmp_path / "cloud.json", board.url)
    with running_daemon(tmp_path, "--cloud", "--fake", **OUT_OF_THE_WAY) as daemon:
        wait_until(lambda: board.taken != [], "a state")
        assert run_gua(tmp_path, "unenroll").returncode == 0
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "nothing is pushed from now on" in daemon.log(), "the end of the pushing")
        before, now_ms = len(tick_statuses(tmp_path / "gua.db")), SystemClock().now_ms()
        wait_until(lambda: len(tick_statuses(tmp_path / "gua.db")) >= before + 4, "ticks all the same")
        assert max(parse_time_ms(taken["observedAt"]) for taken in board.taken) <= now_ms
        pushed = len(board.taken)
        write_enrolment(tmp_path / "cloud.json", board.url)
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(board.taken) > pushed, "a state again")
        daemon.stop()
    assert daemon.process.returncode == 0


def test_metrics_say_how_things_stand_while_no_tick_comes(tmp_path: Path) -> None:
    """Through a pause: else what a card did before it would stand in the file for ever."""
    metrics = tmp_path / "gua.prom"

    def told(line: str) -> bool:
        return metrics.exists() and line in metrics.read_text()

    with running_daemon(tmp_path, "--fake", "--textfile", str(tmp_path)) as daemon:
        wait_until(lambda: told("gua_card_state{"), "a card's state")
        assert told("gua_paused 0")
        assert run_gua(tmp_path, "pause", "--for", "1h").returncode == 0
        wait_until(lambda: told("gua_paused 1"), "the pause")
        wait_until(lambda: not told("gua_card_state{"), "the states to go")
        assert run_gua(tmp_path, "resume").returncode == 0
        wait_until(lambda: told("gua_card_state{"), "the states to be back")
        daemon.stop()
    assert not metrics.exists()
