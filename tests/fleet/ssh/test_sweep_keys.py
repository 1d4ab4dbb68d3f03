"""Who is let in, by which key, and what is said where nobody is."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from gua_fleet.errors import FleetError
from gua_fleet.model import Outcome
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import sweep
from tests.fleet.ssh.asking import ask
from tests.fleet.ssh.sshd import Keys, Sshd, host, ssh_options


def test_sweep_wrong_key_is_auth_failed_and_says_what_was_tried(
    sshd: Sshd, keys: Keys, agent: Path, known: Path
) -> None:
    result = ask(host(sshd, keys, known, agent, identity_file=str(keys.stranger), user="nobody-here"))
    assert result.outcome is Outcome.AUTH_FAILED
    assert result.detail == f"nobody-here@127.0.0.1 was not let in; tried {keys.stranger}"


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """A key that needs a passphrase."""
    return Keys(tmp_path).make("locked", "ed25519", passphrase="secret words")


def test_sweep_key_with_a_passphrase_beside_a_host_with_a_good_one_is_auth_failed_and_names_the_cure(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, locked: Path
) -> None:
    hosts = [host(sshd, keys, known, agent, identity_file=str(locked)), host(sshd, keys, known, agent, name="good")]
    shut_out, good = sweep(hosts, DOCTOR_PROBE, SweepSettings())
    assert shut_out.outcome is Outcome.AUTH_FAILED
    assert f"{locked} (needs a passphrase: add it to an agent with ssh-add)" in (shut_out.detail or "")
    assert good.outcome is Outcome.OK


def test_sweep_where_every_key_needs_a_passphrase_asks_nobody(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, locked: Path
) -> None:
    hosts = [host(sshd, keys, known, agent, identity_file=str(locked), name=f"h{number}") for number in range(3)]
    with pytest.raises(FleetError, match=f"{locked} needs a passphrase.*run `ssh-add {locked}` first") as caught:
        sweep(hosts, DOCTOR_PROBE, SweepSettings())
    assert caught.value.exit_status == 2


@pytest.mark.parametrize("suffix", ["", ".pub"], ids=["key", "public-key"])
def test_sweep_key_with_a_passphrase_that_an_agent_holds_is_let_in(
    sshd: Sshd,
    keys: Keys,
    agent: Path,
    known: Path,
    locked: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
) -> None:
    askpass = tmp_path / "askpass"
    askpass.write_text("#!/bin/sh\necho secret words\n")
    askpass.chmod(0o755)
    place = tmp_path / "agent.sock"
    # `-D` keeps it in the foreground, so that it ends with this test
    ssh_agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(place)], stdout=subprocess.DEVNULL)
    try:
        _wait_for(place)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        environ = {**os.environ, "SSH_ASKPASS": str(askpass), "SSH_ASKPASS_REQUIRE": "force"}
        subprocess.run(["ssh-add", "-q", str(locked)], env=environ, check=True, stdin=subprocess.DEVNULL)
        authorized = tmp_path / "sshd" / "authorized_keys"
        authorized.write_text(locked.with_suffix(".pub").read_text())
        result = ask(
            host(
                sshd,
                keys,
                known,
                agent,
                identity_file=f"{locked}{suffix}",
                ssh_options=ssh_options(known, identitiesonly="yes"),
            )
        )
    finally:
        ssh_agent.terminate()
        ssh_agent.wait()
    assert (result.outcome, result.detail) == (Outcome.OK, None)


def _wait_for(path: Path) -> None:
    """Until somebody listens at the socket: it is there a moment before that."""
    deadline_s = time.monotonic() + 30
    with socket.socket(socket.AF_UNIX) as probe:
        while probe.connect_ex(str(path)) != 0:
            assert time.monotonic() < deadline_s
            time.sleep(0.02)


def test_sweep_missing_key_file_is_auth_failed_and_named(sshd: Sshd, keys: Keys, agent: Path, known: Path) -> None:
    result = ask(host(sshd, keys, known, agent, identity_file="/nowhere/key"))
    assert result.outcome is Outcome.AUTH_FAILED
    assert "/nowhere/key (no such file)" in (result.detail or "")


def test_sweep_public_key_without_an_agent_is_told_as_such(sshd: Sshd, keys: Keys, agent: Path, known: Path) -> None:
    public = keys.client.with_suffix(".pub")
    result = ask(host(sshd, keys, known, agent, identity_file=str(public)))
    assert result.outcome is Outcome.AUTH_FAILED
    assert f"{public} (a public key, the private half of which is in no agent)" in (result.detail or "")


def test_sweep_host_that_hangs_up_after_too_many_keys_is_auth_failed(
    keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    ours = tmp_path / "home" / ".ssh"
    ours.mkdir()
    for kind in ("ed25519", "ecdsa", "rsa"):
        Keys.make(keys, f"{ours}/id_{kind}", kind)
    with Sshd(tmp_path / "strict", keys, "MaxAuthTries 2") as strict:
        known.write_text(strict.known_line())
        result = ask(host(strict, keys, known, agent, identity_file=None))
    assert result.outcome is Outcome.AUTH_FAILED
    assert f"tried {ours}/id_ed25519, {ours}/id_ecdsa: these may be too many for it (MaxAuthTries)" in (
        result.detail or ""
    )
