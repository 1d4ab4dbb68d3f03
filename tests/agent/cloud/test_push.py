"""The daemon's pusher against a real board."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

import pytest

from gua.clock import SystemClock
from gua.cloud.client import BoardClient
from gua.cloud.config import CloudConfig
from gua.cloud.heard import board_of
from gua.cloud.push import Pusher, open_pusher
from gua.cloud.sender import StateSender, names_an_addition
from gua.config import load_settings
from gua.errors import ConfigError, TokenRefused
from gua.model import Fault, FaultKind, TickStatus
from gua.units import to_iso
from tests.agent.cloud.enrolled import AGENT_TOKEN
from tests.agent.running import PATIENCE_S, wait_until
from tests.agent.store.ticks import MONDAY, SECOND, card, holder, tick
from tests.board import Board, Misdeed, running_board

HELD = card("GPU-a", 3, (holder("ada", 7, memory_mb=None),))


@pytest.fixture
def pusher(enrolment: CloudConfig, caplog: pytest.LogCaptureFixture) -> Iterator[Pusher]:
    """One that tries again quickly."""
    caplog.set_level(logging.DEBUG)
    sender = StateSender(enrolment, BoardClient(enrolment.server_url), logging.getLogger("gua.cloud").warning)
    made = Pusher(sender, SystemClock(), first_backoff_s=0.01)
    yield made
    made.close(PATIENCE_S)


def state(number: int) -> Any:
    return tick(MONDAY + number * SECOND, HELD)


def newest(board: Board) -> Optional[str]:
    return board.taken[-1]["observedAt"] if board.taken else None


def said(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level and "gua" in record.name]


def test_what_is_offered_arrives(board: Board, pusher: Pusher) -> None:
    pusher.offer(state(1))
    wait_until(lambda: len(board.taken) == 1, "the state")
    assert (newest(board), board.violations) == (to_iso(MONDAY + SECOND), [])


def test_while_the_board_is_away_only_the_newest_state_is_kept(
    board: Board, pusher: Pusher, caplog: pytest.LogCaptureFixture
) -> None:
    board.misdeed = Misdeed.BROKEN
    for number in range(1, 51):
        pusher.offer(state(number))
    wait_until(lambda: len(board.paths) >= 3, "some attempts")
    board.misdeed = None
    wait_until(lambda: newest(board) == to_iso(MONDAY + 50 * SECOND), "the newest state")
    assert len(board.taken) == 1
    wait_until(lambda: len(said(caplog, logging.INFO)) == 1, "the recovery to be told")
    assert len(said(caplog, logging.WARNING)) == 1  # however often it failed
    assert "failed pushes" in said(caplog, logging.INFO)[0]


def test_offering_never_waits_for_a_silent_board(board: Board, enrolment: CloudConfig) -> None:
    """Offered from a thread of its own, so that a regression fails instead of hanging."""
    patient = BoardClient(enrolment.server_url, timeout_s=10 * PATIENCE_S, overall_s=10 * PATIENCE_S)
    pusher = Pusher(StateSender(enrolment, patient, lambda line: None), SystemClock(), 300.0)
    board.misdeed = Misdeed.SILENCE
    pusher.offer(state(1))
    wait_until(lambda: len(board.paths) == 1, "the attempt that hangs")
    offering = threading.Thread(target=lambda: [pusher.offer(state(number)) for number in range(100)], daemon=True)
    offering.start()
    offering.join(PATIENCE_S)
    assert not offering.is_alive()
    assert pusher.close(0.0) is False  # nor does the end
    board.ended.set()
    assert pusher.close(PATIENCE_S)


def test_what_waits_is_pushed_at_the_end(board: Board, enrolment: CloudConfig) -> None:
    sender = StateSender(enrolment, BoardClient(enrolment.server_url), lambda line: None)
    pusher = Pusher(sender, SystemClock(), first_backoff_s=300.0)
    board.misdeed = Misdeed.BROKEN
    pusher.offer(state(1))
    wait_until(lambda: len(board.paths) == 1, "the attempt that fails")
    pusher.offer(state(2))
    board.misdeed = None
    assert pusher.close(PATIENCE_S)
    assert newest(board) == to_iso(MONDAY + 2 * SECOND)


def test_a_refused_token_is_loud_and_waits_long(board: Board, pusher: Pusher, caplog: pytest.LogCaptureFixture) -> None:
    board.agents.clear()
    pusher.offer(state(1))
    wait_until(lambda: said(caplog, logging.ERROR) != [], "the refusal to be told")
    (line,) = said(caplog, logging.ERROR)
    assert "gua enroll --force" in line
    assert AGENT_TOKEN not in line
    for number in range(2, 20):
        pusher.offer(state(number))
    assert pusher._not_before_s - SystemClock().monotonic_s() > 60  # at least half of five minutes lay ahead
    assert len(board.paths) == 1


def test_a_refusal_stands_where_nobody_enrolled_anew(board: Board, enrolment: CloudConfig) -> None:
    """And it is what is told, whatever became of the file meanwhile."""
    board.agents.clear()

    def torn() -> CloudConfig:
        raise ConfigError("cloud.json is damaged")

    for renew in (torn, lambda: enrolment):
        told: list[str] = []
        sender = StateSender(enrolment, BoardClient(enrolment.server_url), told.append, renew)
        board.paths.clear()
        with pytest.raises(TokenRefused):
            sender.send(state(1))
        assert (len(board.paths), told) == (1, [])


def test_a_new_enrolment_may_lead_to_a_newer_board(board: Board, enrolment: CloudConfig) -> None:
    """What the old one did not know is told again."""
    with running_board() as newer:
        newer.agents[AGENT_TOKEN] = "host-1"
        moved, told = replace(enrolment, server_url=newer.url), list[str]()
        sender = StateSender(enrolment, BoardClient(enrolment.server_url), told.append, lambda: moved)
        board.revision = 1
        sender.send(state(1))
        board.agents.clear()
        sender.send(state(2))
    assert "usageState" in newer.taken[0]["gpus"][0]
    assert newer.url in told[-1]


@pytest.mark.parametrize("misdeed", [Misdeed.TOO_LARGE, Misdeed.UNPROCESSABLE])
def test_a_refused_state_is_dropped_and_the_next_one_sent(
    board: Board, pusher: Pusher, caplog: pytest.LogCaptureFixture, misdeed: Misdeed
) -> None:
    board.misdeed = misdeed
    pusher.offer(state(1))
    wait_until(lambda: said(caplog, logging.ERROR) != [], "the refusal to be told")
    board.misdeed = None
    pusher.offer(state(2))
    wait_until(lambda: board.taken != [], "the next state")
    assert [taken["observedAt"] for taken in board.taken] == [to_iso(MONDAY + 2 * SECOND)]
    assert len(board.paths) == 2


def test_an_older_board_gets_the_older_revision_from_then_on(
    board: Board, pusher: Pusher, caplog: pytest.LogCaptureFixture
) -> None:
    board.revision = 1
    for number in (1, 2):
        pusher.offer(state(number))
        wait_until(lambda: len(board.taken) == number, "the state")  # noqa: B023 - waited for within the loop
    assert len(board.paths) == 3  # refused once, then known
    assert len(said(caplog, logging.WARNING)) == 1
    assert board.taken[1]["gpus"][0]["processes"][0]["memoryUsedMb"] == 0
    assert board.taken[1]["errors"] == ["memory_unavailable"]


def test_a_refusal_of_something_else_keeps_the_newer_revision(
    board: Board, pusher: Pusher, caplog: pytest.LogCaptureFixture
) -> None:
    board.misdeed, board.detail = Misdeed.UNPROCESSABLE, "hostname does not fit this host"
    pusher.offer(state(1))
    wait_until(lambda: said(caplog, logging.ERROR) != [], "the refusal to be told")
    board.misdeed = None
    pusher.offer(state(2))
    wait_until(lambda: len(board.taken) == 1, "the state")
    assert "usageState" in board.taken[0]["gpus"][0]


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("body.gpus.0.usageState", True),
        ("body.gpus.0.processes.3.type", True),
        ("body.gpus.0.processes.3.memoryUsedMb", True),
        ("unknown field usageState", True),
        ("extra field 'type' is not permitted", True),
        ("memoryUsedMb must be a number", True),
        ("body.gpus.0.memoryUsedMb", False),
        ("body.gpus.0.processes.3.pid", False),
        ("hostname: wrong type", False),
        ("", False),
    ],
)
def test_what_names_an_addition(named: str, expected: bool) -> None:
    assert names_an_addition((named,)) is expected


def test_a_broken_driver_is_a_heartbeat_with_the_version_it_had(board: Board, pusher: Pusher) -> None:
    pusher.offer(state(1))
    wait_until(lambda: len(board.taken) == 1, "the state")
    fault = Fault("nvmlInit_v2", "DRIVER_NOT_LOADED", FaultKind.FAILED)
    pusher.offer(replace(tick(MONDAY, status=TickStatus.ERROR), fault=fault, driver_version=None))
    wait_until(lambda: len(board.taken) == 2, "the heartbeat")
    assert board.taken[1]["collectionStatus"] == "error"
    assert board.taken[1]["host"]["driverVersion"] == "550.90.07"


def test_nvml_without_a_card_of_those_on_the_bus_is_a_heartbeat(board: Board, pusher: Pusher) -> None:
    pusher.offer(tick(MONDAY))
    wait_until(lambda: len(board.taken) == 1, "the heartbeat")
    assert (board.taken[0]["collectionStatus"], board.taken[0]["errors"]) == ("error", ["nvml_init_failed"])


def test_a_state_that_cannot_be_told_is_said_and_the_next_one_sent(
    board: Board, pusher: Pusher, caplog: pytest.LogCaptureFixture
) -> None:
    pusher.offer(replace(state(1), ts_ms="yesterday"))
    wait_until(lambda: said(caplog, logging.ERROR) != [], "the failure to be told")
    pusher.offer(state(2))
    wait_until(lambda: len(board.taken) == 1, "the next state")


def test_the_daemons_pusher_says_where_it_pushes_and_keeps_what_was_taken(
    board: Board, enrolment: CloudConfig, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO)
    pusher = open_pusher(load_settings(environ={}), enrolment, SystemClock(), tmp_path / "gua.db")
    pusher.offer(state(1))
    assert pusher.close(PATIENCE_S)
    assert len(board.taken) == 1
    assert any(board.url in line for line in said(caplog, logging.INFO))
    assert board_of(enrolment, tmp_path / "gua.db", SystemClock().now_ms())["last_accepted_at"] is not None
