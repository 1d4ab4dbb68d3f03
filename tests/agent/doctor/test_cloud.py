"""What the doctor says of the enrolment. Only on request does it ask the board."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gua.clock import SystemClock
from gua.cloud.config import load_config
from gua.cloud.heard import HeardKeeper, begin_heard, forget_heard
from gua.doctor import cloud
from gua.doctor.check import Check
from gua.doctor.cloud import no_answer, with_silence
from gua.errors import BoardFailed
from gua.model import TickStatus
from gua.store.reader import TickRow
from gua.units import parse_time_ms, to_iso
from tests.agent.cloud.enrolled import AGENT_TOKEN, write_enrolment
from tests.agent.running import check_of, run_json
from tests.board import Board, Misdeed, running_board
from tests.nvml_stub import Card, Scene

URL = "https://board.invalid"
QUARTER_MS = 15 * 60_000


def look(path: Path, *, ask_board: bool) -> Check:
    return cloud.look(path, path.with_name("gua.db"), SystemClock().now_ms(), ask_board=ask_board)


def ticked(at_ms: int) -> TickRow:
    return TickRow(at_ms, TickStatus.OK, 30_000)


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    monkeypatch.setenv("NO_PROXY", "*")
    with running_board() as running:
        running.agents[AGENT_TOKEN] = "host-1"
        yield running


def test_not_to_be_enrolled_is_no_fault(tmp_path: Path) -> None:
    check = look(tmp_path / "cloud.json", ask_board=True)
    assert (check.status, check.details) == ("skip", {"enrolled": False})


def test_an_enrolment_is_told_without_asking_anybody(board: Board, tmp_path: Path) -> None:
    check = look(write_enrolment(tmp_path / "cloud.json", board.url), ask_board=False)
    assert check.status == "ok"
    told = {name: check.details[name] for name in ("enrolled", "server_url", "display_name")}
    assert told == {"enrolled": True, "server_url": board.url, "display_name": "node-1"}
    assert set(check.details["board"].values()) == {None}
    assert AGENT_TOKEN not in repr(check)
    assert board.paths == []


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [(None, 0o644, "0644"), ("", 0o600, "is empty"), ('{"serverUrl": "', 0o600, "damaged")],
)
def test_what_is_wrong_with_the_file_is_told_and_left(tmp_path: Path, text: str, mode: int, words: str) -> None:
    path = write_enrolment(tmp_path / "cloud.json", URL)
    if text is not None:
        path.write_text(text)
    path.chmod(mode)
    check = look(path, ask_board=False)
    assert check.status == "warn"
    assert words in check.summary
    assert check.cure
    assert path.stat().st_mode & 0o777 == mode


def test_the_board_is_asked_on_request(board: Board, tmp_path: Path) -> None:
    path = write_enrolment(tmp_path / "cloud.json", board.url)
    assert look(path, ask_board=True).status == "ok"
    board.misdeed = Misdeed.BROKEN
    assert look(path, ask_board=True).status == "fail"
    board.misdeed = None
    board.agents.clear()
    refused = look(path, ask_board=True)
    assert (refused.status, AGENT_TOKEN in repr(refused)) == ("fail", False)
    assert board.taken == []


def test_a_daemon_that_samples_without_the_board_taking_any_of_it_is_a_warning(tmp_path: Path) -> None:
    path, clock = write_enrolment(tmp_path / "cloud.json", URL), SystemClock()
    keeper, config = HeardKeeper(tmp_path / "gua.db", clock), load_config(path, lambda line: None)
    enrolled_ms = parse_time_ms(look(path, ask_board=False).details["enrolled_at"])
    never = look(path, ask_board=False)
    assert with_silence(never, True, ticked(enrolled_ms + QUARTER_MS)).status == "ok"  # it was enrolled just now
    warned = with_silence(never, True, ticked(enrolled_ms + QUARTER_MS + 1))
    assert (warned.status, warned.details) == ("warn", never.details)
    assert warned.summary.endswith("but whether the board took a state is not known")
    begin_heard(tmp_path / "gua.db", config, enrolled_ms)
    warned = with_silence(look(path, ask_board=False), True, ticked(enrolled_ms + QUARTER_MS + 1))
    assert warned.summary == f"enrolled with {URL}, but the board took no state yet"
    assert warned.details["board"]["none_since"] == to_iso(enrolled_ms)
    keeper.accepted(config)
    keeper.failed(config, BoardFailed(f"{URL} cannot be reached: no route to it"))
    check = look(path, ask_board=False)
    accepted_ms = parse_time_ms(check.details["board"]["last_accepted_at"])
    warned = with_silence(check, True, ticked(accepted_ms + 2 * QUARTER_MS))
    assert warned.status == "warn"
    assert warned.cure is not None
    # nothing of this host or of the moment, so that a fleet's doctor groups it
    assert warned.summary == (
        f"enrolled with {URL}, but the board takes no state any more: {URL} cannot be reached: no route to it"
    )
    for running, last in ((False, ticked(accepted_ms + 2 * QUARTER_MS)), (True, None), (True, ticked(accepted_ms))):
        assert with_silence(check, running, last) is check  # told by the check of the daemon, or a pause
    forget_heard(tmp_path / "gua.db")
    path.unlink()
    gone = look(path, ask_board=False)
    assert with_silence(gone, True, ticked(accepted_ms + 2 * QUARTER_MS)) is gone


def test_a_file_system_or_board_that_hangs_is_told() -> None:
    assert no_answer(ask_board=False).status == "warn"


@pytest.mark.processes
def test_the_command_asks_when_told_to(board: Board, tmp_path: Path, nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    write_enrolment(tmp_path / "cloud.json", board.url)
    assert check_of(run_json(tmp_path, "doctor"), "cloud")["status"] == "ok"
    assert board.paths == []
    assert "the board answers" in check_of(run_json(tmp_path, "doctor", "--cloud"), "cloud")["summary"]
