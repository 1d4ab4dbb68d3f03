from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gua_fleet.ask import exit_status, with_passphrases, with_passwords
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


def make_key(path: Path, passphrase: str) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True)
    return str(path)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen")
def test_passphrase_is_asked_once_for_each_locked_key_and_given_to_its_hosts_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    locked, other, free = (make_key(tmp_path / name, words) for name, words in [("a b", "x1y2"), ("o", "z"), ("f", "")])
    own = Secret("own")
    hosts = (
        Host("n1", "n1", identity_file=locked),
        Host("n2", "n2", identity_file=locked),
        Host("free", "free", identity_file=free),
        Host("own", "own", identity_file=locked, passphrase=own),
        Host("login", "login", identity_file=locked, password=own),
        Host("out", "out", identity_file=locked, maintenance="moving"),
        Host("other", "other", identity_file=other),
    )
    asked: list[tuple[str, str]] = []

    def ask(prompt: str, otherwise: str) -> Secret:
        asked.append((prompt, otherwise))
        return Secret("x1y2" if locked in prompt else "")

    found = with_passphrases(Inventory(hosts, "x"), ask)
    assert asked == [
        (f"passphrase of {locked}, for 2 of 7 hosts", f"run `ssh-add '{locked}'` first"),
        (f"passphrase of {other}, for 1 of 7 hosts", f"run `ssh-add {other}` first"),
    ]
    typed = Secret("x1y2")
    assert [host.passphrase for host in found.hosts] == [typed, typed, None, own, None, None, None]
    assert "x1y2" not in repr(found)


def test_nothing_is_asked_for_hosts_on_this_machine() -> None:
    inventory = Inventory((Host("here", "here", connection="local"),), "x")
    assert with_passphrases(inventory, lambda prompt, otherwise: pytest.fail(prompt)) is inventory
