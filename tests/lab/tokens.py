"""Tokens as an administrator keeps them, and where they must not be found afterwards."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
import yaml

from tests.lab.host import LabHost


class Vault:
    """An encrypted file of variables, whose password Ansible finds by itself."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._file = folder / "vault.yml"
        password = folder / "password"
        password.write_text("a password\n")
        monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(password))

    def options(self, tokens: Mapping[str, str]) -> tuple[str, str]:
        """What ansible-playbook is given so that it knows these tokens, by host."""
        self._file.write_text(yaml.safe_dump({"gua_agent_enrollment_tokens": dict(tokens)}))
        command = [str(Path(sys.executable).parent / "ansible-vault"), "encrypt", "--", str(self._file)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return "-e", f"@{self._file}"


def leave_no_pipelining(monkeypatch: pytest.MonkeyPatch) -> None:
    """A site whose own settings would have Ansible write each module into a file on the host."""
    monkeypatch.setenv("ANSIBLE_PIPELINING", "0")


def assert_unseen(secrets: Iterable[str], printed: str, host: LabHost) -> None:
    """None of them was printed, logged, or left in a file but the enrolment itself."""
    for secret in secrets:
        assert secret not in printed
        found = host.run(
            "sh", "-c", 'grep -rlF -e "$1" /etc /home /opt /root /run /srv /tmp /usr/local /var 2>/dev/null;'
            ' journalctl --output=cat --no-pager | grep -cF -e "$1"; true', "sh", secret, timeout_s=300,
        )  # fmt: skip
        assert [line for line in found.splitlines() if line != "/var/lib/gua/cloud.json"] == ["0"], found
