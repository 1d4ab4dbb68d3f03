from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from gua_fleet.model import Host, Outcome
from gua_fleet.secrets import Secret
from tests.fleet.ssh import stalls
from tests.fleet.ssh.asking import ask
from tests.fleet.ssh.sshd import Keys, Sshd, host


class _PasswordServer(paramiko.ServerInterface):
    """Lets in whoever says `sesame`. key_first: and has shown a key before."""

    def __init__(self, key_first: bool) -> None:
        self._wants = "publickey" if key_first else "password"

    def get_allowed_auths(self, username: str) -> str:
        return self._wants

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        if self._wants != "publickey":
            return paramiko.AUTH_FAILED
        self._wants = "password"
        return paramiko.AUTH_PARTIALLY_SUCCESSFUL

    def check_auth_password(self, username: str, password: str) -> int:
        right = password == "sesame" and self._wants == "password"
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED


@pytest.fixture(params=[False, True], ids=["password", "key-and-password"])
def password_host(request: pytest.FixtureRequest, keys: Keys, tmp_path: Path) -> Iterator[Host]:
    """Its answer is a refused session, for being let in is all there is to see."""

    def converse(client: stalls.socket.socket, over: stalls.threading.Event) -> None:
        transport = paramiko.Transport(client)
        transport.add_server_key(paramiko.PKey.from_path(keys.host))
        transport.start_server(server=_PasswordServer(request.param))
        over.wait(300)
        transport.close()

    known = tmp_path / "known_hosts"
    with stalls.serving(converse) as port:
        known.write_text(f"[127.0.0.1]:{port} {keys.public('host')}\n")
        yield host(port, keys, known, ("x",))


def _with(password: str | None, target: Host) -> Host:
    return Host(**{**target.__dict__, "password": Secret(password) if password else None})


def test_password_that_was_given_before_lets_in(password_host: Host) -> None:
    result = ask(_with("sesame", password_host))
    assert (result.outcome, result.detail) == (
        Outcome.UNREACHABLE,
        "the host refuses a session: Administratively prohibited",
    )


def test_wrong_password_is_named_and_not_shown(password_host: Host) -> None:
    result = ask(_with("hunter2", password_host))
    assert result.outcome is Outcome.AUTH_FAILED
    assert "the password" in (result.detail or "")
    assert "hunter2" not in repr(result)


def test_passphrase_that_was_given_before_opens_the_key(sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(sshd.known_line())
    locked = Keys(tmp_path).make("locked", "ed25519", passphrase="secret words")
    (tmp_path / "sshd" / "authorized_keys").write_text(locked.with_suffix(".pub").read_text())
    target = host(sshd, keys, known, agent, identity_file=str(locked), passphrase=Secret("secret words"))
    assert ask(target).outcome is Outcome.OK
    wrong = ask(host(sshd, keys, known, agent, identity_file=str(locked), passphrase=Secret("other words")))
    assert wrong.outcome is Outcome.AUTH_FAILED
    assert "the passphrase given does not open it" in (wrong.detail or "")


@pytest.fixture
def certified(keys: Keys, tmp_path: Path) -> Path:
    """A key of nobody's authorized_keys, with a certificate beside it."""
    key = Keys(tmp_path).make("certified", "ed25519")
    command = ["ssh-keygen", "-q", "-s", str(keys.other_host), "-I", "test", "-n", "root", str(key.with_suffix(".pub"))]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return key


def test_certificate_beside_a_key_is_offered_before_the_key_alone(
    keys: Keys, agent: Path, tmp_path: Path, certified: Path
) -> None:
    known, trusted = tmp_path / "known_hosts", tmp_path / "ca.pub"
    trusted.write_text(keys.other_host.with_suffix(".pub").read_text())
    with Sshd(tmp_path / "trusting", keys, f"TrustedUserCAKeys {trusted}", "AuthorizedPrincipalsFile none") as server:
        known.write_text(server.known_line())
        target = host(server, keys, known, agent, identity_file=str(certified), user="root")
        result = ask(target)
    assert (result.outcome, result.detail) == (Outcome.OK, None)


def test_key_with_a_certificate_that_nobody_trusts_is_still_let_in_by_itself(
    sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path, certified: Path
) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(sshd.known_line())
    (tmp_path / "sshd" / "authorized_keys").write_text(certified.with_suffix(".pub").read_text())
    assert ask(host(sshd, keys, known, agent, identity_file=str(certified))).outcome is Outcome.OK
