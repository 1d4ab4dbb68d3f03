"""Enrolment with a board: who is refused, what happens by hand, and what a board's trouble costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.board import Board, Misdeed
from tests.lab.board import ENVIRONMENT, lab_board
from tests.lab.deployment import QUICK, Site, look
from tests.lab.full import FULL
from tests.lab.harness import Lab
from tests.lab.host import LabHost
from tests.lab.releases import FEARS_BOARDS, alter_wheel
from tests.lab.tokens import Vault, assert_unseen

pytestmark = FULL

CLOUD = "/var/lib/gua/cloud.json"


@pytest.fixture(scope="module")
def site(lab: Lab) -> Site:
    site = Site(lab, "atlas", **QUICK, gua_agent_environment=ENVIRONMENT)
    run = site.play("deploy.yml")
    assert run.status == 0, run.output
    return site


@pytest.fixture(scope="module")
def atlas(site: Site) -> LabHost:
    return site.lab.hosts["atlas"]


@pytest.fixture
def board(site: Site, atlas: LabHost, tmp_path: Path) -> Iterator[Board]:
    """A board that knows nobody, and a host that is not enrolled."""
    atlas.run("gua", "unenroll", "--db", "/var/lib/gua/gua.db")
    with lab_board(site.lab, tmp_path) as board:
        yield board


def pushes(host: LabHost) -> bool:
    """Whether the daemon that runs was started to push."""
    return (
        "--cloud"
        in host.run("sh", "-c", "tr '\\0' '\\n' </proc/$(systemctl show -P MainPID gua-agent)/cmdline").split()
    )


def by_hand(host: LabHost, board: Board, token: str) -> None:
    """What an administrator would type on the host."""
    host.run("env", *(f"{name}={value}" for name, value in ENVIRONMENT.items()), "gua", "enroll", "--server-url",
             board.url, "--enrollment-token-file", "-", "--db", "/var/lib/gua/gua.db", stdin=token)  # fmt: skip


def test_a_token_from_a_program_enrols_and_one_that_fails_is_told_without_its_output(
    site: Site, atlas: LabHost, board: Board, tmp_path: Path
) -> None:
    mint = tmp_path / "mint"
    mint.write_text('#!/bin/sh\necho once-for-$1-5b1e; test ! -e "$0.broken"\n')
    mint.chmod(0o755)
    (tmp_path / "mint.broken").touch()
    command = ("-vvv", "--diff", "-e", json.dumps({"gua_agent_enrollment_token_command": [str(mint)]}))
    failed = site.play("enroll.yml", *command, gua_agent_server_url=board.url)
    assert (failed.status, failed.result("atlas")) == (2, "failed"), failed.output
    assert f"{mint} gave no token for atlas, and status 1" in failed.rows["atlas"][-1]
    (tmp_path / "mint.broken").unlink()
    board.one_time.add("once-for-atlas-5b1e")
    rehearsed = site.play("enroll.yml", "--check", *command, gua_agent_server_url=board.url)
    assert (rehearsed.status, rehearsed.result("atlas")) == (0, "would enrol"), rehearsed.output
    assert (board.claims, pushes(atlas)) == ([], False)
    done = site.play("enroll.yml", *command, gua_agent_server_url=board.url)
    assert (done.status, done.result("atlas"), pushes(atlas)) == (0, "enrolled", True), done.output
    assert done.changed["atlas"] == rehearsed.changed["atlas"]
    assert_unseen(["once-for-atlas-5b1e", *board.agents], failed.output + rehearsed.output + done.output, atlas)


def test_a_refused_token_and_none_at_all_leave_the_host_as_it_was(
    site: Site, atlas: LabHost, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert site.play("deploy.yml").status == 0
    before = look(atlas)
    none = site.play("enroll.yml", gua_agent_server_url=board.url)
    assert (none.status, none.result("atlas")) == (2, "failed")
    assert "There is no token for atlas" in none.rows["atlas"][-1]
    vault = Vault(tmp_path, monkeypatch)
    refused = site.play("enroll.yml", "-vvv", *vault.options({"atlas": "stale-8c2"}), gua_agent_server_url=board.url)
    assert (refused.status, refused.result("atlas")) == (2, "failed"), refused.output
    assert "was not enrolled: " in refused.rows["atlas"][-1]
    assert_unseen(["stale-8c2"], refused.output, atlas)
    # and were it shown, this would be seen
    shown = site.play(
        "enroll.yml", "-vvv", *vault.options({"atlas": "stale-8c2"}),
        gua_agent_server_url=board.url, gua_agent_no_log="false",
    )  # fmt: skip
    assert "stale-8c2" in shown.output
    assert (look(atlas), pushes(atlas)) == (before, False)


def test_what_is_done_by_hand_counts_from_the_next_start_or_deployment(
    site: Site, atlas: LabHost, board: Board
) -> None:
    board.one_time.add("by-hand")
    by_hand(atlas, board, "by-hand")
    assert not pushes(atlas)
    run = site.play("deploy.yml")
    assert (run.status, run.changed["atlas"], pushes(atlas)) == (0, 1, True), run.output
    atlas.run("gua", "unenroll", "--db", "/var/lib/gua/gua.db")
    atlas.run("systemctl", "restart", "gua-agent")  # as a boot would
    assert not pushes(atlas)
    run = site.play("deploy.yml")
    assert (run.status, run.changed["atlas"]) == (0, 0), run.output


def test_an_enrolment_that_is_there_is_replaced_only_when_that_was_asked_for(
    site: Site, atlas: LabHost, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault(tmp_path, monkeypatch)
    board.one_time |= {"first", "second"}
    first = site.play("enroll.yml", *vault.options({"atlas": "first"}), gua_agent_server_url=f"{board.url}/")
    assert first.status == 0, first.output
    kept = atlas.run("cat", CLOUD)
    options = vault.options({"atlas": "second"})
    for trouble, words in (
        ({"gua_agent_server_url": "https://other.lab"}, f"enrolled with {board.url} as"),
        ({"gua_agent_server_url": board.url}, "refuses this host's token"),
    ):
        run = site.play("enroll.yml", *options, **trouble)
        assert (run.status, run.result("atlas")) == (2, "failed"), run.output
        assert words in run.rows["atlas"][-1]
        assert (atlas.run("cat", CLOUD), board.one_time) == (kept, {"second"})
        board.agents.clear()
    forced = site.play("enroll.yml", *options, gua_agent_server_url=board.url, gua_agent_enroll_force="true")
    assert (forced.status, forced.result("atlas"), board.one_time) == (0, "enrolled", set()), forced.output
    assert atlas.run("cat", CLOUD) != kept


def test_a_board_that_takes_no_state_costs_the_host_nothing(
    site: Site, atlas: LabHost, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.one_time.add("good")
    # an empty body, which asks whether a board is there, is answered; a state is not
    board.next_misdeed = lambda: Misdeed.BROKEN if board.agents and len(board.paths) > 2 else None
    options = Vault(tmp_path, monkeypatch).options({"atlas": "good"})
    run = site.play("enroll.yml", *options, gua_agent_server_url=board.url)
    assert (run.status, run.result("atlas")) == (2, "failed"), run.output
    assert "is enrolled, and the board took no state yet" in run.rows["atlas"][-1]
    assert pushes(atlas)
    board.next_misdeed = lambda: None
    again = site.play("enroll.yml", *options, gua_agent_server_url=board.url)
    assert (again.status, again.result("atlas")) == (0, "unchanged"), again.output
    assert site.play("status.yml").result("atlas") == "well"


def test_an_agent_that_cannot_bear_a_board_samples_on_without(
    site: Site, atlas: LabHost, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = alter_wheel(site.wheel, tmp_path, "0.9.5", FEARS_BOARDS)
    assert site.play("deploy.yml", wheel=wheel).status == 0
    board.one_time.add("good")
    options = Vault(tmp_path, monkeypatch).options({"atlas": "good"})
    run = site.play("enroll.yml", *options, gua_agent_server_url=board.url)
    assert (run.status, run.result("atlas")) == (2, "failed"), run.output
    assert "that was given up again: the agent is not well" in run.rows["atlas"][-1]
    assert atlas.run("sh", "-c", f"test -e {CLOUD} || echo gone").strip() == "gone"
    assert site.play("status.yml").result("atlas") == "well"
