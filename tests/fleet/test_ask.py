from __future__ import annotations

from pathlib import Path

import pytest

from gua_fleet.ask import exit_status, with_passphrase, with_passwords
from gua_fleet.errors import KeysLocked
from gua_fleet.inventory.load import Inventory
from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.secrets import Secret

OK, DOWN, QUIET, OUT = Outcome.OK, Outcome.UNREACHABLE, Outcome.NO_GPU, Outcome.SKIPPED


@pytest.mark.parametrize(
    ("outcomes", "allow_missing", "status"),
    [
        ([OK, OK], 0, 0),
        ([OK, QUIET, OUT], 0, 0),
        ([OK, DOWN], 0, 1),
        ([OK, DOWN], 1, 0),
        ([OK, DOWN, DOWN], 1, 1),
        ([DOWN, DOWN], 2, 3),
        ([DOWN, OUT], 0, 3),
        ([OUT], 0, 3),
        ([QUIET], 0, 0),
    ],
)
def test_exit_status(outcomes: list[Outcome], allow_missing: int, status: int) -> None:
    results = [HostResult(Host("n", "n"), outcome) for outcome in outcomes]
    assert exit_status(results, allow_missing) == status


def test_exit_status_bad_news_fails_however_many_may_be_missing() -> None:
    results = [HostResult(Host("n", "n"), OK, document={"ready": False}), HostResult(Host("m", "m"), DOWN)]
    assert exit_status(results, 1) == 0
    assert exit_status(results, 1, sound=lambda result: False) == 1
    assert exit_status(results[1:], 1, sound=lambda result: False) == 3


def test_typed_passwords_go_to_the_hosts_that_have_none_and_each_is_asked_once() -> None:
    asked: list[str] = []

    def ask(prompt: str, otherwise: str) -> Secret:
        asked.append(prompt)
        return Secret("" if "sudo" in prompt else "typed")

    own = Host("own", "own", password=Secret("own"), become_password=Secret("own"))
    found = with_passwords(Inventory((own, Host("n", "n")), "x"), ask_pass=True, ask_become=True, ask=ask)
    assert asked == ["SSH password", "sudo password"]
    # nothing typed for sudo: the same as for the log-in, as Ansible has it
    assert [(host.password, host.become_password) for host in found.hosts] == [
        (Secret("own"), Secret("own")),
        (Secret("typed"), Secret("typed")),
    ]
    assert "typed" not in repr(found)


def test_a_passphrase_is_given_to_hosts_without_one_of_their_own() -> None:
    locked = KeysLocked("no key can be used", [Path("/k/id one")])
    inventory = Inventory((Host("own", "own", passphrase=Secret("own")), Host("n", "n")), "x")
    prompts: list[tuple[str, str]] = []
    found = with_passphrase(inventory, locked, lambda *words: prompts.append(words) or Secret("typed"))
    assert [host.passphrase for host in found.hosts] == [Secret("own"), Secret("typed")]
    assert prompts == [("passphrase of /k/id one", "run `ssh-add '/k/id one'` first")]
