"""Whether to believe a host's key: strict, with recording of keys never seen before as the only relaxation."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from gua_fleet.errors import HostFailure
from gua_fleet.model import Outcome
from gua_fleet.ssh.hostkeys import (
    Judgement,
    KnownHosts,
    Trust,
    fingerprint,
    hashed_name,
    host_key_name,
    key_type_of,
    read_known_hosts,
)
from gua_fleet.ssh.revoked import refuse_revoked
from gua_fleet.ssh.target import Target


class HostKeys:
    """The known keys of all hosts, each set of files read once for the whole sweep.

    accept_new: record and accept the key of a host that no line names. A changed or revoked key never is.
    """

    def __init__(self, *, accept_new: bool) -> None:
        self._accept_new = accept_new
        self._known: dict[tuple[Path, ...], KnownHosts] = {}
        self._lock = threading.Lock()
        self.recorded: list[str] = []

    def warnings(self) -> tuple[str, ...]:
        """One line for each line or file that was left out."""
        return tuple(dict.fromkeys(warning for known in self._known.values() for warning in known.warnings))

    def key_types(self, target: Target) -> tuple[str, ...]:
        return self._of(target).key_types(target.key_name, target.key_port)

    def check(self, target: Target, blob: bytes) -> None:
        """Return when the key is the target's, else raise HostFailure with what to do."""
        refuse_revoked(target, blob)
        if _believed(self._of(target), target, blob):
            return
        if not (self._accept_new or target.accept_new):
            raise HostFailure(Outcome.HOST_KEY_UNKNOWN, _unknown(target, blob))
        self._record(target, blob)

    def _of(self, target: Target) -> KnownHosts:
        with self._lock:
            if target.known_hosts not in self._known:
                self._known[target.known_hosts] = read_known_hosts(target.known_hosts)
            return self._known[target.known_hosts]

    def _record(self, target: Target, blob: bytes) -> None:
        """Write the key down, unless a thread or a program that was faster wrote one for this very name."""
        file, name = target.known_hosts[0], host_key_name(target.key_name, target.key_port)
        try:
            with _locked(file) as descriptor:
                if _believed(read_known_hosts(target.known_hosts), target, blob):
                    return
                _append(descriptor, hashed_name(name) if target.hash_names else name, blob)
        except OSError as exc:
            raise HostFailure(
                Outcome.HOST_KEY_UNKNOWN, f"its key cannot be recorded in {file}: {exc.strerror}"
            ) from exc
        with self._lock:
            self.recorded.append(f"{name} {fingerprint(blob)} in {file}")


def _believed(known: KnownHosts, target: Target, blob: bytes) -> bool:
    """Whether the key is on file; False where no line names the host. Raises HostFailure for any other key."""
    judgement = known.judge(target.key_name, target.key_port, blob)
    if judgement.trust in (Trust.KNOWN, Trust.UNKNOWN):
        return judgement.trust is Trust.KNOWN
    raise HostFailure(Outcome.HOST_KEY_CHANGED, _changed(target, judgement, blob))


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[int]:
    """The file open for appending, made private when it is new, and ours alone for the while."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _append(descriptor: int, name: str, blob: bytes) -> None:
    """Add one line in one write, so that no line is ever torn."""
    line = f"{name} {key_type_of(blob)} {base64.b64encode(blob).decode()}\n".encode()
    size = os.fstat(descriptor).st_size
    unfinished = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    os.write(descriptor, b"\n" + line if unfinished else line)


def prefer_types(offered: Sequence[str], on_file: Sequence[str]) -> list[str]:
    """Host key algorithms in the order to ask for: those whose keys are on file first, so that keys can be compared."""
    known = [name for key_type in on_file for name in _algorithms(key_type) if name in offered]
    return [*known, *(name for name in offered if name not in known)]


def _algorithms(key_type: str) -> tuple[str, ...]:
    return ("rsa-sha2-512", "rsa-sha2-256") if key_type == "ssh-rsa" else (key_type,)


def _unknown(target: Target, blob: bytes) -> str:
    port = "" if target.port == 22 else f"-p {target.port} "
    return (
        f"its key is not on file ({key_type_of(blob)} {fingerprint(blob)}): "
        f"connect once with `ssh {port}{target.user}@{target.address}`, or use --accept-new"
    )


def _changed(target: Target, judgement: Judgement, blob: bytes) -> str:
    assert judgement.entry is not None  # every judgement but UNKNOWN rests on a line
    presented = f"{key_type_of(blob)} {fingerprint(blob)}"
    if judgement.trust is Trust.REVOKED:
        return f"its key {presented} is revoked in {judgement.entry.place}: do not trust this host"
    name = host_key_name(target.key_name, target.key_port)
    return (
        f"its key {presented} is not the {judgement.entry.key_type} key in {judgement.entry.place}: if the host was "
        f"re-installed, run `ssh-keygen -f {judgement.entry.file} -R '{name}'` and add the new key; else beware"
    )
