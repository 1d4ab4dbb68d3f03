"""A vault that cannot be opened costs the hosts that need it, and nobody else; what is in it is never shown."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gua_fleet.errors import InventoryError
from gua_fleet.inventory.load import Selection, load_inventory
from gua_fleet.inventory.vault_pipes import read_pipes
from gua_fleet.model import Host
from gua_fleet.prompt import CannotAsk, ask_secret
from gua_fleet.secrets import Secret
from tests.fleet.inventory.ansible_says import ANSIBLE

OPTION = "give --vault-password-file FILE, --vault-id or --ask-vault-pass"


@pytest.fixture(scope="module")
def vaulted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Values made by ansible-vault: `user` (id default, password pw) and `password` (id dev, password other)."""
    folder = tmp_path_factory.mktemp("vault")
    (folder / "pw").write_text("pw\n")
    (folder / "other").write_text("other\n")
    made = {}
    for name, text, identity in (("user", "hidden-user", "default@pw"), ("password", "hunter2", "dev@other")):
        command = [ANSIBLE / "ansible-vault", "encrypt_string", "--vault-id", identity, text, "--name", "v"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
        made[name] = "!vault |\n" + "\n".join(f"        {line.strip()}" for line in done.stdout.splitlines()[1:])
    return made


@contextlib.contextmanager
def pipe(text: str) -> Iterator[str]:
    """The name of a pipe that holds the text, as a shell makes it for `<(...)`."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    yield f"/dev/fd/{reading}"
    os.close(reading)


@contextlib.contextmanager
def named_pipe(name: str, text: str) -> Iterator[None]:
    """One that a program writes the text into. text: as `printf` has it."""
    os.mkfifo(name)
    with subprocess.Popen(["/bin/sh", "-c", 'printf "$1" >"$2"', "sh", text, name]) as program:
        try:
            yield
        finally:
            program.kill()  # should nobody read from it


@pytest.fixture
def inventory(vaulted: dict[str, str]) -> str:
    Path("pw").write_text("pw\n")
    Path("other").write_text("other\n")
    Path("hosts.yml").write_text(
        "all:\n  hosts:\n    open:\n"
        f"    a:\n      ansible_user: {vaulted['user']}\n"
        f"    b:\n      secret: {vaulted['password']}\n      ansible_password: '{{{{ secret }}}}'\n"
        f"    c:\n      ansible_become_password: {vaulted['password']}\n"
    )
    return "hosts.yml"


def _hosts(inventory: str, selection: Selection, **typed: str) -> dict[str, Host]:
    asked: list[str] = []

    def ask(prompt: str, otherwise: str) -> Secret:
        asked.append(prompt)
        return Secret(typed[prompt.rpartition("(")[2].rstrip(")").replace("vault password", "default")])

    found = load_inventory(inventory, selection=selection, ask=ask)
    assert len(asked) == len(typed)
    assert "hunter2" not in repr(found)
    assert "hunter2" not in "".join(found.warnings)
    return {host.name: host for host in found.hosts}


def test_without_passwords_only_the_hosts_that_need_one_to_log_in_are_skipped(inventory: str) -> None:
    found = load_inventory(inventory)
    hosts = {host.name: host for host in found.hosts}
    assert {name for name, host in hosts.items() if host.skip_reason} == {"a", "b"}
    for name in ("a", "b"):
        assert OPTION in (hosts[name].skip_reason or "")
    # reading needs no sudo: this one is asked, and it is said what writing will lack
    assert hosts["c"].become_password is None
    assert any("ansible_become_password cannot be resolved" in line and OPTION in line for line in found.warnings)


def test_a_password_file_opens_what_it_fits(inventory: str) -> None:
    hosts = _hosts(inventory, Selection(vault_password_files=("pw",)))
    assert (hosts["a"].user, hosts["a"].skip_reason) == ("hidden-user", None)
    assert OPTION in (hosts["b"].skip_reason or "")


def test_vault_ids_from_files_and_typed_open_the_rest(inventory: str) -> None:
    selection = Selection(vault_ids=("dev@prompt",), ask_vault_password=True)
    hosts = _hosts(inventory, selection, default="pw", dev="other")
    assert (hosts["a"].user, hosts["b"].password) == ("hidden-user", Secret("hunter2"))
    assert hosts["c"].become_password == Secret("hunter2")
    hosts = _hosts(inventory, Selection(vault_ids=("dev@other", "default@pw")))
    assert [host.skip_reason for host in hosts.values()] == [None] * 4


def test_a_wrong_typed_password_is_a_reason_to_skip(inventory: str) -> None:
    hosts = _hosts(inventory, Selection(ask_vault_password=True), default="wrong")
    assert OPTION in (hosts["a"].skip_reason or "")
    assert hosts["open"].skip_reason is None


def test_an_encrypted_file_costs_its_own_group_only(vaulted: dict[str, str]) -> None:
    Path("group_vars").mkdir()
    Path("group_vars/shut.yml").write_text("ansible_user: x\n")
    Path("pw").write_text("pw\n")
    encrypt = [ANSIBLE / "ansible-vault", "encrypt", "--vault-password-file", "pw", "group_vars/shut.yml"]
    subprocess.run(encrypt, check=True, capture_output=True)
    Path("hosts.yml").write_text("all:\n  hosts: {free: }\n  children: {shut: {hosts: {locked: {gua_cards: 8}}}}\n")
    free, locked = sorted(load_inventory("hosts.yml").hosts, key=lambda host: host.name)
    assert (free.skip_reason, locked.cards) == (None, None)
    assert OPTION in (locked.skip_reason or "")
    with pytest.raises(InventoryError, match=r"no host can be used.*give --vault-password-file FILE"):
        load_inventory("hosts.yml", limit="shut")


def test_where_nobody_can_type_it_is_one_line(inventory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(CannotAsk, match="vault password: there is no terminal to ask at; give --vault-password-file"):
        load_inventory(inventory, selection=Selection(ask_vault_password=True), ask=ask_secret)


def test_a_missing_password_file_is_named(inventory: str) -> None:
    with pytest.raises(InventoryError, match="nowhere was not found"):
        load_inventory(inventory, selection=Selection(vault_password_files=("nowhere",)))


@pytest.mark.parametrize("with_id", [False, True], ids=["file", "id"])
def test_a_password_may_come_through_a_pipe(inventory: str, with_id: bool) -> None:
    with pipe("pw\n") as first, pipe("other\n") as second:
        if with_id:
            selection = Selection(vault_ids=(f"default@{first}", f"dev@{second}"))
        else:
            selection = Selection(vault_password_files=(first, second))
        hosts = _hosts(inventory, selection)
    assert [host.skip_reason for host in hosts.values()] == [None] * 4


def test_a_pipe_may_be_named_by_its_place_in_ones_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path.cwd()))
    with named_pipe("fifo", "pw"):
        plain, ids, passwords = read_pipes((), ("dev@~/fifo",))
    assert (plain, ids, {name: one.reveal for name, one in passwords.items()}) == ((), ("dev@prompt",), {"dev": "pw"})


def test_what_is_no_text_in_a_pipe_is_refused_without_a_word_of_it() -> None:
    said = pytest.raises(InventoryError, match=r"^the vault password from fifo is not UTF-8$")
    with named_pipe("fifo", r"secret\377"), said:
        read_pipes(("fifo",), ())


def test_an_empty_pipe_is_named(inventory: str) -> None:
    with pipe("") as empty, pytest.raises(InventoryError, match=f"no vault password came from {empty}"):
        load_inventory(inventory, selection=Selection(vault_password_files=(empty,)))
