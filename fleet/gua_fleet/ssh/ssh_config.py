"""Reads ssh_config for one host: through `ssh -G` where OpenSSH is, with the library where it is not.

OpenSSH reads its own configuration best (Include, Match, CanonicalizeHostname). It is only asked when a
configuration file says something that matters here, because asking costs a process per host.
"""

from __future__ import annotations

import contextlib
import glob
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import paramiko

from gua_fleet.inventory.ssh_arguments import HARMLESS
from gua_fleet.model import Host
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.target import Options, Target, said_of, target_from_options

_CONFIG_FILES = ("~/.ssh/config", "/etc/ssh/ssh_config")
_SSH_G_LIMIT_S = 10.0
# Harmless to whom is reached, but not to what is believed of the host's key.
_OF_TRUST = frozenset({"stricthostkeychecking", "revokedhostkeys"})
_OF_RECORDING = "hashknownhosts"
_HOP = re.compile(r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?:\[(?P<six>[^\]]+)\]|(?P<name>[^:]+))(?::(?P<port>\d+))?")


class SshConfig:
    """ssh_config as OpenSSH understands it; safe to use from many threads, each question asked once.

    accept_new: new host keys will be recorded, so how to record them matters. warnings: one line for each thing that
    could not be read.
    """

    def __init__(self, *, accept_new: bool = False) -> None:
        self.warnings: list[str] = []
        self._ssh = shutil.which("ssh")
        self._accept_new = accept_new
        said = {keyword for file in _CONFIG_FILES for keyword in _keywords(Path(file).expanduser())}
        self._matters = bool(said - (HARMLESS - _OF_TRUST))
        self._hashes = _OF_RECORDING in said
        self._answers: dict[tuple[str, ...], Future[Options | None]] = {}
        self._lock = threading.Lock()

    def target(self, host: Host, attempt: Attempt | None = None) -> Target:
        """The host's target; a configuration that cannot be read is said once and left out.

        attempt: whose end ends the reading, too. Raises HostFailure when that is what happened.
        """
        options = self._of_files(host, attempt) if self._is_asked_about(host) else None
        return target_from_options(host, options or said_of(host))

    def hop(self, hop: str, config_file: str | None, attempt: Attempt | None = None) -> Target:
        """What ssh_config says of one jump host, `[ssh://][user@]name[:port]`. Raises ValueError when it is none."""
        parts = _HOP.fullmatch(hop)
        if parts is None:
            raise ValueError(f"{hop!r} is no jump host")
        name, port = parts["six"] or parts["name"], parts["port"]
        options = {"-F": config_file} if config_file else {}
        host = Host(name, name, port=int(port) if port else None, user=parts["user"], ssh_options=options)
        return self.target(host, attempt)

    def _is_asked_about(self, host: Host) -> bool:
        records = self._accept_new or "stricthostkeychecking" in host.ssh_options
        return self._matters or "-F" in host.ssh_options or (self._hashes and records)

    def _of_files(self, host: Host, attempt: Attempt | None) -> Options | None:
        question = tuple(_ssh_g_arguments(host))
        with self._lock:
            first = question not in self._answers
            answer = self._answers.setdefault(question, Future())
        if first:
            try:
                answer.set_result(self._read(host, question, attempt))
            except BaseException as exc:
                with self._lock:
                    self._answers.pop(question, None)  # the next one may have more time
                answer.set_exception(exc)
                raise
        return answer.result(attempt.remaining_s() if attempt else None)

    def _read(self, host: Host, question: tuple[str, ...], attempt: Attempt | None) -> Options | None:
        if self._ssh is None:
            return self._by_library(host)
        return self._by_openssh([self._ssh, *question], attempt)

    def _by_openssh(self, command: list[str], attempt: Attempt | None) -> Options | None:
        """`ssh -G`'s answer; None when it refuses to give one."""
        quiet = subprocess.DEVNULL
        try:
            process = subprocess.Popen(command, stdin=quiet, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError as exc:
            self._warn(f"ssh -G cannot be started ({exc}): going on without ssh_config")
            return None
        if attempt:
            attempt.on_cancel(lambda: _kill(process))
        try:
            stdout, stderr = process.communicate(timeout=_SSH_G_LIMIT_S)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            self._warn("ssh -G did not answer: going on without ssh_config (does a `Match exec` of it hang?)")
            return None
        if attempt:
            attempt.remaining_s()
        if process.returncode != 0:
            lines = stderr.decode("utf-8", "replace").strip().splitlines()
            self._warn(f"ssh_config cannot be used, going on without it: {lines[0] if lines else 'no reason given'}")
            return None
        return _parse_answer(stdout.decode("utf-8", "replace"))

    def _by_library(self, host: Host) -> Options | None:
        """Without OpenSSH: what the library makes of the user's file. It knows no Include, and that is said."""
        file = Path(host.ssh_options.get("-F", _CONFIG_FILES[0])).expanduser()
        try:
            text = file.read_text("utf-8", "replace")
        except OSError:
            return None
        if any(line.strip().lower().startswith("include") for line in text.splitlines()):
            self._warn(f"{file}: Include is skipped, because OpenSSH's `ssh` is not installed here")
        try:
            found = paramiko.SSHConfig.from_text(text).lookup(host.address)
        except (paramiko.SSHException, ValueError, KeyError, ImportError) as exc:
            self._warn(f"{file} cannot be used, going on without it: {exc}")
            return None
        several: list[str] = found.pop("identityfile", [])  # type: ignore[assignment]  # its only list, typed as text
        return {**{key: [value] for key, value in found.items()}, "identityfile": several, **said_of(host)}

    def _warn(self, text: str) -> None:
        with self._lock:
            if text not in self.warnings:
                self.warnings.append(text)


def _ssh_g_arguments(host: Host) -> Iterator[str]:
    yield "-G"
    if "-F" in host.ssh_options:
        yield from ("-F", host.ssh_options["-F"])
    for keyword, values in said_of(host).items():
        yield from ("-o", f"{keyword}={values[0]}")
    yield from ("--", host.address)


def _parse_answer(text: str) -> Options:
    answer: dict[str, list[str]] = {}
    for line in text.splitlines():
        keyword, _, value = line.partition(" ")
        answer.setdefault(keyword.lower(), []).append(value)
    return answer


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


def _keywords(file: Path, depth: int = 0) -> Iterator[str]:
    """The keywords that an ssh_config file, or one it includes, uses; in lower case."""
    try:
        lines = file.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        keyword, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if not keyword or keyword.startswith("#"):
            continue
        yield keyword.lower()
        if keyword.lower() == "include" and depth < 16:  # OpenSSH's own limit of nesting
            for part in _included(file, rest):
                yield from _keywords(part, depth + 1)


def _included(file: Path, patterns: str) -> Iterator[Path]:
    for pattern in patterns.split():
        path = Path(pattern.strip('"')).expanduser()
        yield from (Path(name) for name in glob.glob(str(path if path.is_absolute() else file.parent / path)))
