"""What is kept of the pushes: when the board last took a state, and since when it takes none."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gua.cloud.client import BoardClient
from gua.cloud.config import CloudConfig
from gua.cloud.heard import (
    HeardKeeper,
    begin_heard,
    board_line,
    board_of,
    forget_heard,
    heard_path,
    load_heard,
    read_board,
)
from gua.cloud.push import Pusher
from gua.cloud.sender import StateSender
from gua.errors import BoardFailed
from tests.agent.cloud.enrolled import AGENT_TOKEN, write_enrolment
from tests.agent.fakes import FakeClock
from tests.agent.running import PATIENCE_S, wait_until
from tests.agent.store.ticks import MONDAY, SECOND, card, tick
from tests.board import Board, Misdeed

STATE = tick(MONDAY, card())
MINUTE_MS = 60_000
NOT_KNOWN = dict.fromkeys(("last_accepted_at", "last_accepted_age_s", "none_since", "failing_since", "reason"))
AWAY = BoardFailed("https://board.invalid cannot be reached: connection refused; try later")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(MONDAY)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "gua.db"


@pytest.fixture
def keeper(database: Path, clock: FakeClock) -> HeardKeeper:
    return HeardKeeper(database, clock)


@pytest.fixture
def elsewhere() -> CloudConfig:
    """An enrolment whose board nobody asks."""
    from gua.cloud.token import Token

    return CloudConfig("https://board.invalid", "host-1", "node-1", Token(AGENT_TOKEN), "gua_agent")


def test_a_state_that_the_board_took_is_kept_with_its_time(
    board: Board, enrolment: CloudConfig, database: Path, clock: FakeClock, keeper: HeardKeeper
) -> None:
    sender = StateSender(enrolment, BoardClient(board.url), lambda line: None, keeper=keeper)
    assert board_of(enrolment, database, MONDAY) == NOT_KNOWN
    sender.send(STATE)
    told = board_of(enrolment, database, MONDAY + 40 * SECOND)
    assert told == {**NOT_KNOWN, "last_accepted_at": "2026-03-02T00:00:00Z", "last_accepted_age_s": 40.0}
    assert board_line(told) == "board: last accepted 40 s ago\n"
    assert os.listdir(database.parent) == ["board.json"]
    assert heard_path(database).stat().st_mode & 0o007 == 0


@pytest.mark.parametrize("misdeed", [Misdeed.BROKEN, Misdeed.UNAUTHORIZED, Misdeed.UNPROCESSABLE, Misdeed.RESET])
def test_failing_is_told_since_it_began_and_why_without_any_secret(
    board: Board, enrolment: CloudConfig, database: Path, clock: FakeClock, keeper: HeardKeeper, misdeed: Misdeed
) -> None:
    sender = StateSender(enrolment, BoardClient(board.url), lambda line: None, keeper=keeper)
    sender.send(STATE)
    board.misdeed, board.detail = misdeed, f"no, {AGENT_TOKEN} " + "x" * 500
    for _ in range(3):
        clock.sleep_s(100)
        with pytest.raises(BoardFailed):
            sender.send(STATE)
    told = board_of(enrolment, database, clock.now_ms())
    assert (told["last_accepted_age_s"], told["failing_since"]) == (300.0, "2026-03-02T00:01:40Z")
    assert told["reason"] is not None
    assert len(told["reason"]) <= 200
    assert AGENT_TOKEN[:12] not in heard_path(database).read_text()
    assert board_line(told).startswith("board: last accepted 5 min ago; failing since 2026-03-02T00:01:40Z: http://")
    board.misdeed = None
    sender.send(STATE)
    assert board_of(enrolment, database, clock.now_ms())["failing_since"] is None


def test_a_defect_of_ours_is_a_failing_push_too(
    board: Board, enrolment: CloudConfig, database: Path, keeper: HeardKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*arguments: Any) -> None:
        raise ZeroDivisionError(AGENT_TOKEN)

    client = BoardClient(board.url)
    monkeypatch.setattr(client, "push", defect)
    with pytest.raises(ZeroDivisionError):
        StateSender(enrolment, client, lambda line: None, keeper=keeper).send(STATE)
    told = board_of(enrolment, database, MONDAY)
    assert (told["failing_since"], told["reason"]) == ("2026-03-02T00:00:00Z", "the push failed: ZeroDivisionError")


def test_it_is_written_once_a_minute_and_when_failing_begins_or_ends(
    database: Path, clock: FakeClock, keeper: HeardKeeper, elsewhere: CloudConfig
) -> None:
    def written() -> int:
        return heard_path(database).stat().st_ino

    keeper.accepted(elsewhere)
    first = written()
    clock.sleep_s(59)
    keeper.accepted(elsewhere)
    assert written() == first
    keeper.failed(elsewhere, AWAY)  # at once, and with what was not written yet
    told = board_of(elsewhere, database, clock.now_ms())
    assert (told["last_accepted_age_s"], told["reason"]) == (0.0, str(AWAY).partition("; ")[0])
    second = written()
    clock.sleep_s(30)
    keeper.failed(elsewhere, AWAY)
    assert written() == second
    keeper.failed(elsewhere, BoardFailed("another reason"))  # at once: the next push may be minutes away
    assert board_of(elsewhere, database, clock.now_ms())["reason"] == "another reason"
    keeper.accepted(elsewhere)
    assert board_of(elsewhere, database, clock.now_ms())["last_accepted_age_s"] == 0.0
    clock.sleep_s(60)
    keeper.accepted(elsewhere)
    assert board_of(elsewhere, database, clock.now_ms())["last_accepted_age_s"] == 0.0


def test_a_restart_goes_on_with_what_is_kept_and_what_another_process_pushed_counts(
    database: Path, clock: FakeClock, elsewhere: CloudConfig
) -> None:
    HeardKeeper(database, clock).failed(elsewhere, AWAY)
    begun = board_of(elsewhere, database, clock.now_ms())["failing_since"]
    clock.sleep_s(3600)
    again = HeardKeeper(database, clock)
    again.failed(elsewhere, AWAY)
    assert board_of(elsewhere, database, clock.now_ms())["failing_since"] == begun
    clock.sleep_s(3600)
    HeardKeeper(database, clock).accepted(elsewhere)
    clock.sleep_s(3600)
    again.failed(elsewhere, AWAY)
    told = board_of(elsewhere, database, clock.now_ms())
    assert (told["last_accepted_age_s"], told["failing_since"]) == (3600.0, "2026-03-02T03:00:00Z")


def test_what_another_board_took_or_knew_as_another_host_does_not_count(
    database: Path, clock: FakeClock, keeper: HeardKeeper, elsewhere: CloudConfig
) -> None:
    keeper.accepted(elsewhere)
    for other in (replace(elsewhere, host_id="host-2"), replace(elsewhere, server_url="https://other.invalid")):
        assert board_of(other, database, clock.now_ms()) == NOT_KNOWN
        HeardKeeper(database, clock).failed(other, AWAY)
        assert board_of(other, database, clock.now_ms())["last_accepted_at"] is None
        keeper.accepted(elsewhere)
    forget_heard(database)
    assert board_of(elsewhere, database, clock.now_ms()) == NOT_KNOWN


def test_where_it_cannot_be_written_the_push_is_as_good_and_that_is_said_once(
    board: Board, enrolment: CloudConfig, database: Path, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = HeardKeeper(database.parent / "gone" / "gua.db", clock)
    pusher = Pusher(StateSender(enrolment, BoardClient(board.url), lambda line: None, keeper=keeper), clock, 0.01)
    for number in (1, 2):
        clock.sleep_s(600)
        pusher.offer(tick(MONDAY + number * SECOND, card()))
        wait_until(lambda: len(board.taken) == number, "the state")  # noqa: B023 - waited for within the loop
    assert pusher.close(PATIENCE_S)
    warned = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING and "gua" in one.name]
    assert len(warned) == 1
    assert "board.json is not written: No such file or directory" in warned[0]


def test_what_a_killed_program_left_is_used_up_and_nothing_piles_up(
    database: Path, clock: FakeClock, keeper: HeardKeeper, elsewhere: CloudConfig
) -> None:
    beside = database.parent / ".board.json.new"
    beside.write_text("{")
    keeper.accepted(elsewhere)  # another one may be at it right now
    assert not heard_path(database).exists()
    os.utime(beside, (1_000_000_000, 1_000_000_000))
    clock.sleep_s(60)
    keeper.accepted(elsewhere)
    assert board_of(elsewhere, database, clock.now_ms())["last_accepted_age_s"] == 0.0
    assert os.listdir(database.parent) == ["board.json"]


def test_several_that_push_at_once_never_leave_it_missing_or_say_a_word(
    database: Path, clock: FakeClock, keeper: HeardKeeper, elsewhere: CloudConfig, caplog: pytest.LogCaptureFixture
) -> None:
    def push() -> int:
        for _ in range(500):
            HeardKeeper(database, clock).accepted(elsewhere)
        return sum(load_heard(database) is None for _ in range(500))

    keeper.accepted(elsewhere)
    with ThreadPoolExecutor(4) as pool:
        missed = [one.result() for one in [pool.submit(push) for _ in range(4)]]
    assert (missed, caplog.records) == ([0] * 4, [])


def kept(**changed: Any) -> str:
    own = {"server_url": "https://board.invalid", "host_id": "host-1"}
    return json.dumps({**own, "accepted_ms": MONDAY, "failing_ms": None, "reason": None, **changed})


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", "[" * 9000, kept(accepted_ms="today"), kept(accepted_ms=-1), kept(accepted_ms=10**18),
     kept(accepted_ms=True), kept(reason=7), kept(host_id=None), kept(none_ms="x"),
     '["server_url"]', '"server_url"', "7"],
)  # fmt: skip
def test_what_is_damaged_is_as_if_it_were_not_there(
    database: Path, clock: FakeClock, keeper: HeardKeeper, elsewhere: CloudConfig, text: str
) -> None:
    heard_path(database).write_text(text)
    assert board_of(elsewhere, database, MONDAY) == NOT_KNOWN
    keeper.failed(elsewhere, AWAY)
    assert board_of(elsewhere, database, MONDAY)["failing_since"] == "2026-03-02T00:00:00Z"


def test_a_newer_agents_file_is_read(database: Path, elsewhere: CloudConfig) -> None:
    heard_path(database).write_text(kept(more=1))
    assert board_of(elsewhere, database, MONDAY)["last_accepted_at"] == "2026-03-02T00:00:00Z"


def test_a_pipe_in_its_place_holds_nobody_up(database: Path, keeper: HeardKeeper, elsewhere: CloudConfig) -> None:
    os.mkfifo(heard_path(database))
    assert board_of(elsewhere, database, MONDAY) == NOT_KNOWN
    keeper.accepted(elsewhere)
    assert board_of(elsewhere, database, MONDAY)["last_accepted_at"] is not None


def test_who_is_not_enrolled_has_no_board_whatever_lies_there(
    database: Path, keeper: HeardKeeper, elsewhere: CloudConfig
) -> None:
    keeper.accepted(elsewhere)
    path = database.with_name("cloud.json")
    assert read_board(path, database, MONDAY) == (False, None)
    write_enrolment(path, "https://board.invalid")
    assert read_board(path, database, MONDAY)[0] is True
    path.write_text("{")
    assert read_board(path, database, MONDAY) == (None, None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_who_may_not_see_the_enrolment_is_told_what_the_board_took(clock: FakeClock, elsewhere: CloudConfig) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        HeardKeeper(folder / "gua.db", clock).accepted(elsewhere)
        heard_path(folder / "gua.db").chmod(0o644)  # here everybody is a reader
        write_enrolment(folder / "cloud.json", "https://board.invalid")
        os.seteuid(65534)
        try:
            enrolled, told = read_board(folder / "cloud.json", folder / "gua.db", MONDAY)
        finally:
            os.seteuid(0)
        assert (enrolled, told and told["last_accepted_age_s"]) == (None, 0.0)
    finally:
        shutil.rmtree(folder)


def test_none_is_said_only_where_it_is_known_since_when(
    database: Path, clock: FakeClock, keeper: HeardKeeper, elsewhere: CloudConfig
) -> None:
    def told() -> tuple[str | None, str]:
        board = board_of(elsewhere, database, clock.now_ms())
        return board["none_since"], board_line(board)

    assert told() == (None, "board: last accepted not known\n")
    begin_heard(database, elsewhere, MONDAY)
    assert told() == ("2026-03-02T00:00:00Z", "board: none accepted since 2026-03-02T00:00:00Z\n")
    clock.sleep_s(60)
    keeper.failed(elsewhere, AWAY)
    assert told()[1].startswith("board: none accepted since 2026-03-02T00:00:00Z; failing since 2026-03-02T00:01:00Z: ")
    keeper.accepted(elsewhere)
    assert told() == (None, "board: last accepted 0 s ago\n")
    keeper.failed(elsewhere, AWAY)
    assert told()[0] is None


def test_who_fails_without_anything_kept_knows_of_none_since_then(
    database: Path, clock: FakeClock, keeper: HeardKeeper, elsewhere: CloudConfig
) -> None:
    keeper.failed(elsewhere, AWAY)
    clock.sleep_s(100)
    keeper.failed(elsewhere, AWAY)
    told = board_of(elsewhere, database, clock.now_ms())
    assert (told["none_since"], told["failing_since"]) == ("2026-03-02T00:00:00Z", "2026-03-02T00:00:00Z")


def test_what_cannot_be_replaced_is_taken_away_and_failing_is_told_since_it_began(
    database: Path, clock: FakeClock, keeper: HeardKeeper, elsewhere: CloudConfig
) -> None:
    beside = database.parent / ".board.json.new"
    keeper.accepted(elsewhere)
    beside.mkdir()  # as a full disk would: no new file
    os.utime(beside, (1_000_000_000, 1_000_000_000))
    clock.sleep_s(60)
    keeper.accepted(elsewhere)
    assert board_of(elsewhere, database, clock.now_ms()) == NOT_KNOWN
    heard_path(database).write_text(kept())  # and one that nobody may remove
    for _ in range(3):
        clock.sleep_s(60)
        keeper.failed(elsewhere, AWAY)
    beside.rmdir()
    clock.sleep_s(60)
    keeper.failed(elsewhere, AWAY)
    told = board_of(elsewhere, database, clock.now_ms())
    assert (told["last_accepted_at"], told["failing_since"]) == ("2026-03-02T00:01:00Z", "2026-03-02T00:02:00Z")


def test_readers_may_read_it_whatever_the_umask(database: Path, keeper: HeardKeeper, elsewhere: CloudConfig) -> None:
    before = os.umask(0o077)
    try:
        keeper.accepted(elsewhere)
    finally:
        os.umask(before)
    assert heard_path(database).stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("step", [lambda clock: clock.set(3_600_000), lambda clock: clock.set(-3_600_000),
                                  lambda clock: clock.suspend(3600)], ids=["ahead", "back", "asleep"])  # fmt: skip
def test_when_the_clock_is_set_or_the_host_slept_the_time_is_right_with_the_next_push(
    database: Path, clock: FakeClock, keeper: HeardKeeper, elsewhere: CloudConfig, step: Any
) -> None:
    keeper.accepted(elsewhere)
    step(clock)
    keeper.accepted(elsewhere)
    assert board_of(elsewhere, database, clock.now_ms())["last_accepted_age_s"] == 0.0


def test_a_daemon_of_the_enrolment_before_does_not_hide_the_one_there_is(
    database: Path, clock: FakeClock, keeper: HeardKeeper, elsewhere: CloudConfig
) -> None:
    keeper.accepted(elsewhere)
    anew = replace(elsewhere, host_id="host-2")
    clock.sleep_s(3600)
    begin_heard(database, anew, clock.now_ms())
    clock.sleep_s(3600)
    keeper.accepted(elsewhere)  # until it is reloaded
    keeper.failed(elsewhere, AWAY)
    assert board_of(anew, database, clock.now_ms())["none_since"] == "2026-03-02T01:00:00Z"
    keeper.accepted(anew)
    assert board_of(anew, database, clock.now_ms())["last_accepted_age_s"] == 0.0
    HeardKeeper(database, clock).accepted(elsewhere)  # enrolled by hand with the former board
    assert board_of(elsewhere, database, clock.now_ms())["last_accepted_age_s"] == 0.0
