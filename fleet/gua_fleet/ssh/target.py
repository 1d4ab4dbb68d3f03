"""Where and how to connect to one host: a set of ssh_config keywords turned into one frozen value. Pure but for `~`."""

from __future__ import annotations

import getpass
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gua_fleet.model import Host

USER_KNOWN_HOSTS = "~/.ssh/known_hosts"
_GLOBAL_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
# What StrictHostKeyChecking may say (`ssh -G` says true and false for yes and no), beside `ask` and `yes`.
_NO_CHECKING = ("no", "off", "false")

Options = Mapping[str, list[str]]
"""ssh_config keywords in lower case, each with its values in order."""


@dataclass(frozen=True)
class Target:
    """identity_files: keys to offer, in order. named_identity: the inventory or ssh_config names them (else defaults).

    key_name, key_port: what the host's key is filed under: address and port, or the HostKeyAlias alone, for which the
    port is always 22. known_hosts: files to read; the first is the one to record new keys in. accept_new: the key of
    a host never seen before may be recorded. unchecked: StrictHostKeyChecking would switch the checks off, which is
    not done. hash_names: record names hashed. revoked_keys: files of keys never to be believed (RevokedHostKeys).
    jump, proxy_command: at most one of them. connect_limit_s: of ConnectTimeout. family: `any`, `inet` or `inet6`.
    config_file: `-F`, for jump hosts too.
    """

    address: str
    port: int
    user: str
    key_name: str
    key_port: int
    known_hosts: tuple[Path, ...]
    identity_files: tuple[Path, ...]
    named_identity: bool
    identities_only: bool = False
    use_agent: bool = True
    accept_new: bool = False
    unchecked: bool = False
    hash_names: bool = False
    revoked_keys: tuple[Path, ...] = ()
    jump: str | None = None
    proxy_command: str | None = None
    connect_limit_s: float | None = None
    family: str = "any"
    config_file: str | None = None

    @property
    def hops(self) -> tuple[str, ...]:
        """The jump hosts, in the order in which they are passed."""
        return tuple(self.jump.split(",")) if self.jump else ()


def target_from_options(host: Host, options: Options) -> Target:
    """The target that a set of ssh_config keywords describes. Pure but for `~` and the local user's name."""

    def first(keyword: str, default: str = "") -> str:
        return options.get(keyword, [default])[0]

    address, port, alias = first("hostname", host.address), int(first("port", "22")), first("hostkeyalias")
    identities = [value for value in options.get("identityfile", []) if value != "none"]
    checking = first("stricthostkeychecking", "ask").lower()
    return Target(
        address=address,
        port=port,
        user=first("user") or getpass.getuser(),
        key_name=alias or address,
        key_port=22 if alias else port,
        known_hosts=_known_hosts_files(
            first("userknownhostsfile", USER_KNOWN_HOSTS),
            first("globalknownhostsfile", _GLOBAL_KNOWN_HOSTS),
            os.environ.get("HOME", ""),
        ),
        identity_files=tuple(Path(name).expanduser() for name in identities or _DEFAULT_KEYS),
        named_identity=host.identity_file is not None,
        identities_only=first("identitiesonly") == "yes",
        use_agent=first("identityagent") != "none",
        accept_new=checking == "accept-new" or checking in _NO_CHECKING,
        unchecked=checking in _NO_CHECKING,
        hash_names=first("hashknownhosts") == "yes",
        revoked_keys=tuple(Path(name).expanduser() for name in options.get("revokedhostkeys", []) if name != "none"),
        jump=_not_none(first("proxyjump", "none")),
        proxy_command=_not_none(first("proxycommand", "none")),
        connect_limit_s=_seconds(first("connecttimeout", "none")),
        family=first("addressfamily", "any"),
        config_file=host.ssh_options.get("-F"),
    )


def said_of(host: Host) -> dict[str, list[str]]:
    """What the inventory alone says, as ssh_config keywords."""
    options = {keyword: [value] for keyword, value in host.ssh_options.items() if keyword != "-F"}
    named = {
        "port": host.port,
        "user": host.user,
        "identityfile": host.identity_file,
        "proxyjump": host.jump,
        "proxycommand": host.proxy_command,
    }
    options.update({keyword: [str(value)] for keyword, value in named.items() if value is not None})
    return options


@lru_cache(maxsize=64)  # the same for nearly all hosts of a sweep
def _known_hosts_files(user: str, everybody: str, home: str) -> tuple[Path, ...]:
    """home: what `~` stands for, so that the memory is not of another one.

    /dev/null as the only file is a way to switch checking off, which we do not: the user's own file is read then."""
    names = [name for name in shlex.split(user) if name not in ("/dev/null", "none")] or [USER_KNOWN_HOSTS]
    names += [name for name in shlex.split(everybody) if name not in ("/dev/null", "none")]
    return tuple(Path(name).expanduser() for name in names)


def _not_none(text: str) -> str | None:
    return None if text.lower() == "none" else text


def _seconds(text: str) -> float | None:
    return float(text) if text.isdecimal() and int(text) > 0 else None
