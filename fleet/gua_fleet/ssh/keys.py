"""Private keys, each loaded once for the whole sweep, and the order in which they are offered to a host."""

from __future__ import annotations

import base64
import contextlib
import os
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.auth_strategy import AuthSource, AuthStrategy, InMemoryPrivateKey

from gua_fleet.ssh.target import Target

# sshd ends the conversation after six failures by default (MaxAuthTries); leave one for a key of the inventory.
_MOST_AGENT_KEYS = 5
_LOCKED = "needs a passphrase: add it to an agent with ssh-add"


@dataclass(frozen=True)
class KeyFile:
    """One private key file. key: None when it cannot be used as it is, for the reason in `problem`.

    public: wire form of its public half from `FILE.pub`, by which an agent's copy is found; None without that file.
    """

    path: Path
    key: paramiko.PKey | None
    problem: str | None = None
    public: bytes | None = None


class KeyRing:
    """Loads each file once: an RSA key costs 0.1 s of computing, every time."""

    def __init__(self) -> None:
        self._files: dict[Path, KeyFile] = {}
        self._lock = threading.Lock()

    def load(self, path: Path) -> KeyFile:
        with self._lock:
            if path not in self._files:
                self._files[path] = _load(path)
            return self._files[path]


class OfferKeys(AuthStrategy):
    """Offers, in this order: each identity file (or the agent's copy of it), then the agent's other keys.

    offered: what was tried, and what could not be, in words. The agent is only asked once the files have failed.
    """

    def __init__(self, target: Target, keys: KeyRing) -> None:
        super().__init__(ssh_config=paramiko.SSHConfig())
        self.offered: list[str] = []
        self._target = target
        self._keys = keys

    def get_sources(self) -> Generator[AuthSource, None, None]:
        """Sources one by one; the library stops at the first that is let in."""
        with contextlib.ExitStack() as stack:
            locked: list[KeyFile] = []
            seen: set[bytes] = set()
            for path in self._target.identity_files:
                file = self._keys.load(path)
                if file.key is not None:
                    seen.add(file.key.asbytes())
                    self.offered.append(str(path))
                    yield InMemoryPrivateKey(self._target.user, file.key)
                elif path.exists() or self._target.named_identity:
                    locked.append(file)
            yield from self._agent_sources(locked, seen, stack)

    def _agent_sources(
        self, locked: list[KeyFile], seen: set[bytes], stack: contextlib.ExitStack
    ) -> Iterator[AuthSource]:
        wanted = {file.public for file in locked}
        agent_keys = [key for key in self._ask_agent(stack) if key.asbytes() not in seen]
        matching = [key for key in agent_keys if key.asbytes() in wanted]
        others = [] if self._target.identities_only else [key for key in agent_keys if key not in matching]
        for key in [*matching, *others][:_MOST_AGENT_KEYS]:
            self.offered.append(f"agent key {key.get_name()}")
            yield InMemoryPrivateKey(self._target.user, key)
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


def locked_out(target: Target, keys: KeyRing) -> tuple[Path, ...]:
    """The files that need a passphrase, where for want of it there is nothing at all to offer to the target."""
    with contextlib.closing(OfferKeys(target, keys).get_sources()) as sources:
        if next(sources, None) is not None:
            return ()
    return tuple(path for path in target.identity_files if keys.load(path).problem == _LOCKED)


def _load(path: Path) -> KeyFile:
    public = _public_half(path)
    try:
        return KeyFile(path, paramiko.PKey.from_path(path), None, public)
    except FileNotFoundError:
        return KeyFile(path, None, "no such file", public)
    except OSError as exc:
        return KeyFile(path, None, (exc.strerror or str(exc)).lower(), public)
    except TypeError:  # how the cryptography library says that a password is missing
        return KeyFile(path, None, _LOCKED, public)
    except (ValueError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as exc:
        encrypted = "encrypted" in str(exc).lower() or "password" in str(exc).lower()
        problem = _LOCKED if encrypted else "not a key we can read"
        return KeyFile(path, None, problem, public)


def _public_half(path: Path) -> bytes | None:
    try:
        return base64.b64decode(path.with_name(path.name + ".pub").read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return None
