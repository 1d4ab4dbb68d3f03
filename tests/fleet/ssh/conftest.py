"""Real sshd processes on loopback, a key pair each, and a made-up agent that answers with a frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.ssh.sshd import Keys, Sshd, find_sshd, write_agent


@pytest.fixture(autouse=True)
def _clean_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's own keys, agent or known_hosts."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    find_sshd()
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A `gua` that answers any question with an OK document."""
    return write_agent(tmp_path / "agent" / "gua")


@pytest.fixture
def sshd(tmp_path: Path, keys: Keys) -> Iterator[Sshd]:
    """One running sshd that lets `keys.client` in."""
    server = Sshd(tmp_path / "sshd", keys)
    with server:
        yield server


@pytest.fixture
def known(sshd: Sshd, tmp_path: Path) -> Path:
    """A known_hosts with the key of `sshd`."""
    file = tmp_path / "known_hosts"
    file.write_text(sshd.known_line())
    return file
