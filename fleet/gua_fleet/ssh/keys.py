"""Private keys, each loaded once for the whole sweep, and the order in which they are offered to a host."""

from __future__ import annotations

import base64
import contextlib
import copy
import os
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
from paramiko.auth_strategy import AuthSource, AuthStrategy, InMemoryPrivateKey, Password
from paramiko.ssh_exception import PartialAuthentication

from gua_fleet.secrets import Secret
from gua_fleet.ssh.hostkeys import key_type_of
from gua_fleet.ssh.target import Target

# sshd ends the conversation after six failures by default (MaxAuthTries); leave one for a key of the inventory.
_MOST_AGENT_KEYS = 5
_LOCKED = "needs a passphrase: add it to an agent with ssh-add"
_PUBLIC = "a public key, the private half of which is in no agent"
_WRONG_PASSPHRASE = "the passphrase given does not open it"


@dataclass(frozen=True)
class KeyFile:
    """One private key file. key: None when it cannot be used as it is, for the reason in `problem`.

    public: wire form of its public half from `FILE.pub`, by which an agent's copy is found, or from FILE itself where
    that is a public key; None without.
    """

    path: Path
    key: paramiko.PKey | None
    problem: str | None = None
    public: bytes | None = None

    def forms(self) -> Iterator[tuple[paramiko.PKey, str]]:
        """What can be offered of it, with words for it: its certificate (`FILE-cert.pub`), if any, then itself."""
        if self.key is None:
            return
        if self.key.public_blob:
            yield self.key, f"{self.path} with its certificate"
            plain = copy.copy(self.key)
            plain.public_blob = None
            yield plain, str(self.path)
        else:
            yield self.key, str(self.path)


class KeyRing:
    """Loads each file once: an RSA key costs 0.1 s of computing, every time."""

    def __init__(self) -> None:
        self._files: dict[tuple[Path, Secret | None], KeyFile] = {}
        self._lock = threading.Lock()

    def load(self, path: Path, passphrase: Secret | None = None) -> KeyFile:
        """The file, opened with `passphrase` where it needs one."""
        with self._lock:
            if (path, passphrase) not in self._files:
                self._files[path, passphrase] = _load(path, passphrase)
            return self._files[path, passphrase]


class OfferKeys(AuthStrategy):
    """Offers, in this order: each identity file (or the agent's copy of it), the agent's other keys, the password.

    offered: what was tried, and what could not be, in words. The agent is only asked once the files have failed.
    """

    def __init__(
        self, target: Target, keys: KeyRing, passphrase: Secret | None = None, password: Secret | None = None
    ) -> None:
        super().__init__(ssh_config=paramiko.SSHConfig())
        self.offered: list[str] = []
        self.has_password = password is not None
        self._target = target
        self._keys = keys
        self._passphrase = passphrase
        self._password = password

    def get_sources(self) -> Generator[AuthSource, None, None]:
        """Sources one by one; the library stops at the first that is let in."""
        with contextlib.ExitStack() as stack:
            locked: list[KeyFile] = []
            seen: set[bytes] = set()
            for path in self._target.identity_files:
                file = self._keys.load(path, self._passphrase)
                for key, words in file.forms():
                    seen.add(key.asbytes())
                    self.offered.append(words)
                    yield _Key(self._target.user, key)
                if file.key is None and (path.exists() or self._target.named_identity):
                    locked.append(file)
            yield from self._agent_sources(locked, seen, stack)
            if self._password is not None:
                self.offered.append("the password")
                yield _Password(self._target.user, self._give_password)

    def _give_password(self) -> str:
        return self._password.reveal if self._password else ""

    def _agent_sources(
        self, locked: list[KeyFile], seen: set[bytes], stack: contextlib.ExitStack
    ) -> Iterator[AuthSource]:
        wanted = {file.public for file in locked}
        agent_keys = [key for key in self._ask_agent(stack) if key.asbytes() not in seen]
        matching = [key for key in agent_keys if key.asbytes() in wanted]
        others = [] if self._target.identities_only else [key for key in agent_keys if key not in matching]
        for key in [*matching, *others][:_MOST_AGENT_KEYS]:
            self.offered.append(f"agent key {key.get_name()}")
            yield _Key(self._target.user, key)
        held = {key.asbytes() for key in agent_keys}
        self.offered += [f"{file.path} ({file.problem})" for file in locked if file.public not in held]

    def _ask_agent(self, stack: contextlib.ExitStack) -> tuple[paramiko.AgentKey, ...]:
        if not self._target.use_agent or not os.environ.get("SSH_AUTH_SOCK"):
            return ()
        try:
            agent = paramiko.Agent()
        except (OSError, paramiko.SSHException):
            return ()
        stack.callback(agent.close)
        return agent.get_keys()


class _Key(InMemoryPrivateKey):
    """A key that says so when the server takes it and then wants more: the library would call that let in."""

    def authenticate(self, transport: paramiko.Transport) -> Any:
        """Nothing left to do. Raises PartialAuthentication with the methods that the server wants beside the key."""
        more = super().authenticate(transport)
        if more and not transport.is_authenticated():
            raise PartialAuthentication(more)
        return more


class _Password(Password):
    """A password, with the same honesty."""

    def authenticate(self, transport: paramiko.Transport) -> Any:
        """As `_Key.authenticate`."""
        more = super().authenticate(transport)
        if more and not transport.is_authenticated():
            raise PartialAuthentication(more)
        return more


def locked_out(target: Target, keys: KeyRing, passphrase: Secret | None = None) -> tuple[Path, ...]:
    """The files that need a passphrase, where for want of it there is nothing at all to offer to the target."""
    with contextlib.closing(OfferKeys(target, keys, passphrase).get_sources()) as sources:
        if next(sources, None) is not None:
            return ()
    return tuple(path for path in target.identity_files if keys.load(path, passphrase).problem == _LOCKED)


def _load(path: Path, passphrase: Secret | None) -> KeyFile:
    public = _public_half(path)
    for word in (None, passphrase.reveal.encode()) if passphrase is not None else (None,):
        key, problem = _open(path, word)
        if key is not None or problem != _LOCKED:
            break
    if key is None and problem == _LOCKED and passphrase is not None:
        problem = _WRONG_PASSPHRASE
    if key is None and public is None:  # as to ssh, a public key alone names the agent's copy
        public = _public_key(path)
        problem = problem if public is None else _PUBLIC
    return KeyFile(path, key, problem, public)


def _open(path: Path, passphrase: bytes | None) -> tuple[paramiko.PKey | None, str | None]:
    try:
        return paramiko.PKey.from_path(path, passphrase), None  # type: ignore[arg-type]  # bytes are what it takes
    except FileNotFoundError:
        return None, "no such file"
    except OSError as exc:
        return None, (exc.strerror or str(exc)).lower()
    except TypeError:  # how the cryptography library says that a password is missing
        return None, _LOCKED
    except (ValueError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as exc:
        words = str(exc).lower()
        encrypted = passphrase is not None or "encrypted" in words or "password" in words
        return None, _LOCKED if encrypted else "not a key we can read"


def _public_half(path: Path) -> bytes | None:
    return _public_key(path.with_name(path.name + ".pub"))


def _public_key(path: Path) -> bytes | None:
    """What a file with a public key holds; None for any other."""
    try:
        kind, encoded = path.read_bytes().split()[:2]
        blob = base64.b64decode(encoded, validate=True)
    except (OSError, ValueError):
        return None
    return blob if key_type_of(blob).encode() == kind else None
