"""Keys that must never be believed again (RevokedHostKeys): a list of public keys, or OpenSSH's binary list (KRL)."""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from gua_fleet.errors import HostFailure
from gua_fleet.model import Outcome
from gua_fleet.ssh.hostkeys import fingerprint, key_type_of
from gua_fleet.ssh.target import Target

_KRL_MAGIC = b"SSHKRL\n\0"
_KEYGEN_LIMIT_S = 10.0


def refuse_revoked(target: Target, blob: bytes) -> None:
    """Raise HostFailure when a RevokedHostKeys file holds the key, or cannot be read (ssh believes no key then)."""
    for file in target.revoked_keys:
        problem = _problem(file, blob)
        if problem:
            raise HostFailure(Outcome.HOST_KEY_CHANGED, problem)


@lru_cache(maxsize=4096)
def _problem(file: Path, blob: bytes) -> str | None:
    try:
        content = file.read_bytes()
    except OSError as exc:
        return f"RevokedHostKeys {file} cannot be read ({exc.strerror}), so no host key can be believed: mend that"
    if content.startswith(_KRL_MAGIC):
        return _problem_in_krl(file, blob)
    wanted = base64.b64encode(blob)
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.lstrip().startswith(b"#") and wanted in line.split():
            return f"its key {_words(blob)} is revoked in {file}:{number}: do not trust this host"
    return None


def _problem_in_krl(file: Path, blob: bytes) -> str | None:
    keygen = shutil.which("ssh-keygen")
    if keygen is None:
        return f"RevokedHostKeys {file} is a binary list, which needs OpenSSH's ssh-keygen: install openssh-client"
    with tempfile.NamedTemporaryFile("w", suffix=".pub") as public:
        public.write(f"{key_type_of(blob)} {base64.b64encode(blob).decode()}\n")
        public.flush()
        command = [keygen, "-Q", "-f", str(file), public.name]
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_KEYGEN_LIMIT_S, check=False
        )
    if done.returncode == 0:
        return None
    if b"REVOKED" in done.stdout:
        return f"its key {_words(blob)} is revoked in {file}: do not trust this host"
    return f"RevokedHostKeys {file} cannot be used, so no host key can be believed: mend that"


def _words(blob: bytes) -> str:
    return f"{key_type_of(blob)} {fingerprint(blob)}"
