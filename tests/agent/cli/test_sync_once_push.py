"""`gua sync-once --push` against a real board: the local write first, whatever the board does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gua.cli.main import main
from gua.schemas import load_schema
from tests.agent.cloud.enrolled import AGENT_TOKEN, write_enrolment
from tests.agent.running import add_pci_card, run_gua, tick_statuses
from tests.board import Board, Misdeed, running_board
from tests.nvml_stub import GIB, Card, Error, Process, Scene


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Board]:
    for name, value in {"HOME": str(tmp_path), "GUA_DB": str(tmp_path / "gua.db"), "NO_PROXY": "*"}.items():
        monkeypatch.setenv(name, value)
    with running_board() as running:
        running.agents[AGENT_TOKEN] = "host-1"
        yield running


@pytest.fixture
def enrolled(board: Board, tmp_path: Path) -> Path:
    return write_enrolment(tmp_path / "cloud.json", board.url)


def sync(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, document and stderr of a run with the made-up host."""
    status = main(["sync-once", "--fake", "--json", *words])
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    Draft202012Validator(load_schema("gua.observation.1")).validate(document)
    return status, document, printed.err


@pytest.mark.parametrize("mode", ["always", "auto"])
def test_an_enrolled_host_stores_and_pushes(
    board: Board, enrolled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    status, document, _ = sync(capsys, "--push", mode)
    assert (status, document["stored"]) == (0, True)
    assert document["push"] == {"mode": mode, "result": "pushed", "reason": None}
    assert (len(board.taken), board.violations) == (1, [])
    assert len(board.taken[0]["gpus"]) == len(document["cards"]) == 8
    assert len(tick_statuses(tmp_path / "gua.db")) == 1


def test_without_an_enrolment_nothing_is_collected(board: Board, tmp_path: Path) -> None:
    assert main(["sync-once", "--fake"]) == 2
    assert not (tmp_path / "gua.db").exists()


def test_a_damaged_enrolment_is_found_before_collecting(board: Board, enrolled: Path, tmp_path: Path) -> None:
    enrolled.write_text("{")
    assert main(["sync-once", "--fake"]) == 2
    assert not (tmp_path / "gua.db").exists()


def test_never_asks_nobody(board: Board, enrolled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, document, _ = sync(capsys, "--push", "never")
    assert (status, document["push"]["result"], board.paths) == (0, "not-asked", [])


def test_auto_without_an_enrolment_pushes_nowhere(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    status, document, _ = sync(capsys, "--push", "auto")
    assert (status, document["push"]["result"], document["stored"]) == (0, "not-enrolled", True)


def test_auto_with_a_damaged_enrolment_is_a_failure_that_keeps_the_local_write(
    board: Board, enrolled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    enrolled.write_text("{")
    status, document, told = sync(capsys, "--push", "auto")
    assert (status, document["push"]["result"], document["stored"]) == (1, "failed", True)
    assert "not pushed" in told


@pytest.mark.parametrize(
    "misdeed", [Misdeed.BROKEN, Misdeed.UNPROCESSABLE, Misdeed.UNAUTHORIZED, Misdeed.LOGIN_PAGE, Misdeed.REDIRECT]
)
def test_a_push_that_fails_keeps_the_local_write(
    board: Board, enrolled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], misdeed: Misdeed
) -> None:
    board.misdeed = misdeed
    status, document, told = sync(capsys)
    assert (status, document["stored"], document["push"]["result"]) == (1, True, "failed")
    assert len(tick_statuses(tmp_path / "gua.db")) == 1
    assert f"gua: sync-once: not pushed: {document['push']['reason']}" in told
    assert AGENT_TOKEN not in told + json.dumps(document)


def test_a_state_that_cannot_be_told_keeps_the_local_write(
    board: Board, enrolled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No reading is known that does this, so a defect is put in."""

    def defect(*arguments: Any, **options: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("gua.cloud.sender.to_payload", defect)
    status, document, told = sync(capsys)
    assert (status, document["stored"], document["push"]["result"], board.paths) == (1, True, "failed", [])
    assert "ZeroDivisionError" in told


def test_an_older_board_is_served_and_that_is_said(
    board: Board, enrolled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board.revision = 1
    status, document, told = sync(capsys)
    assert (status, document["push"]["result"], len(board.taken)) == (0, "pushed", 1)
    assert "left out" in told


def test_what_became_of_the_push_is_kept_for_the_status(
    board: Board, enrolled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told() -> Any:
        assert main(["status", "--json"]) == 3  # no daemon samples here
        return json.loads(capsys.readouterr().out)["board"]

    assert set(told().values()) == {None}
    sync(capsys)
    accepted = told()
    assert accepted["last_accepted_at"] is not None
    assert (accepted["failing_since"], accepted["reason"]) == (None, None)
    board.misdeed = Misdeed.BROKEN
    sync(capsys)
    failing = told()
    assert failing["last_accepted_at"] == accepted["last_accepted_at"]
    assert failing["failing_since"] >= accepted["last_accepted_at"]
    assert failing["reason"].startswith(f"{board.url} answered HTTP 500")
    sync(capsys, "--push", "never")
    assert told()["failing_since"] == failing["failing_since"]
    assert main(["status"]) == 3
    assert f"failing since {failing['failing_since']}: {board.url}" in capsys.readouterr().out.splitlines()[1]


@pytest.mark.processes
def test_without_nvml_nothing_is_written_and_a_heartbeat_is_sent(
    board: Board, enrolled: Path, tmp_path: Path, nvml_scene: Path
) -> None:
    Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),)).save(nvml_scene)
    add_pci_card(tmp_path)
    done = run_gua(tmp_path, "sync-once", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["stored"], document["push"]["result"]) == (1, False, "pushed")
    assert (board.taken[0]["collectionStatus"], board.taken[0]["errors"]) == ("error", ["nvml_init_failed"])
    assert not (tmp_path / "gua.db").exists()


@pytest.mark.processes
def test_both_errors_are_told_when_the_heartbeat_fails_too(
    board: Board, enrolled: Path, tmp_path: Path, nvml_scene: Path
) -> None:
    Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),)).save(nvml_scene)
    add_pci_card(tmp_path)
    board.misdeed = Misdeed.BROKEN
    done = run_gua(tmp_path, "sync-once", "--json")
    assert (done.returncode, json.loads(done.stdout)["push"]["result"]) == (1, "failed")
    assert "nvml_init_failed: DRIVER_NOT_LOADED" in done.stderr
    assert "HTTP 500" in done.stderr


@pytest.mark.processes
def test_a_failed_process_list_is_partial_on_the_board_for_that_time_only(
    board: Board, enrolled: Path, tmp_path: Path, nvml_scene: Path
) -> None:
    refused = Error("nvmlDeviceGetComputeRunningProcesses", "UNKNOWN")
    healthy = Card("GPU-a", memory_used=4 * GIB, processes=(Process(os.getpid(), 4 * GIB),))
    for card in (Card("GPU-a", rules=(refused,)), healthy):
        Scene(cards=(card,)).save(nvml_scene)
        assert run_gua(tmp_path, "sync-once").returncode == 0
    first, second = board.taken
    assert (first["collectionStatus"], first["errors"]) == ("partial", ["process_list_unavailable"])
    assert (second["collectionStatus"], second["gpus"][0]["usageState"]) == ("ok", "idle_held")
    assert second["gpus"][0]["processes"][0]["pid"] == os.getpid()
    assert board.violations == []
