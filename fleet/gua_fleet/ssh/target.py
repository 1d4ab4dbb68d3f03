"""Where and how to connect to one host: the inventory's word completed by ssh_config, through `ssh -G` where it is.

OpenSSH reads its own configuration best (Include, Match, CanonicalizeHostname). It is only asked when a
configuration file says something that matters here, because asking costs a process per host.
"""

from __future__ import annotations

import getpass
import glob
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gua_fleet.inventory.ssh_arguments import HARMLESS
from gua_fleet.model import Host

USER_KNOWN_HOSTS = "~/.ssh/known_hosts"
_GLOBAL_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_CONFIG_FILES = ("~/.ssh/config", "/etc/ssh/ssh_config")
_SSH_G_LIMIT_S = 10.0


@dataclass(frozen=True)
class Target:
    """identity_files: keys to offer, in order. named_identity: the inventory or ssh_config names them (else defaults).

    key_name, key_port: what the host's key is filed under: address and port, or the HostKeyAlias alone, for which the
    port is always 22. known_hosts: files to read;
    the first is the one to record new keys in. jump, proxy_command: at most one of them. connect_limit_s: of
    ConnectTimeout. family: `any`, `inet` or `inet6`. config_file: `-F`, for jump hosts too.
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
    jump: str | None = None
    proxy_command: str | None = None
    connect_limit_s: float | None = None
    family: str = "any"
    config_file: str | None = None


class SshConfig:
    """ssh_config as OpenSSH understands it. warnings: one line for each thing that could not be read."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self._ssh = shutil.which("ssh")
        self._matters = any(_matters(Path(file).expanduser()) for file in _CONFIG_FILES)

    def target(self, host: Host) -> Target:
        """The host's target; a configuration that OpenSSH refuses is said once and left out."""
        options = self._asked(host) if self._ssh and (self._matters or "-F" in host.ssh_options) else None
        return target_from_options(host, options or _said(host))

    def _asked(self, host: Host) -> dict[str, list[str]] | None:
        """`ssh -G`'s answer, keyword -> values; None when it refuses to give one."""
        command = [self._ssh or "ssh", *_ssh_g_arguments(host), "--", host.address]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SSH_G_LIMIT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as exc:
            self._warn(f"ssh -G did not answer ({exc}): going on without ssh_config")
            return None
        if done.returncode != 0:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            self._warn(f"ssh_config cannot be used, going on without it: {lines[0] if lines else 'no reason given'}")
            return None
        answer: dict[str, list[str]] = {}
        for line in done.stdout.decode("utf-8", "replace").splitlines():
            keyword, _, value = line.partition(" ")
            answer.setdefault(keyword.lower(), []).append(value)
        return answer

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def target_from_options(host: Host, options: Mapping[str, list[str]]) -> Target:
    """The target that a set of ssh_config keywords describes. Pure but for `~` and the local user's name."""

    def first(keyword: str, default: str = "") -> str:
        return options.get(keyword, [default])[0]

    address, port, alias = first("hostname", host.address), int(first("port", "22")), first("hostkeyalias")
    timeout = first("connecttimeout", "none")
    identities = [value for value in options.get("identityfile", []) if value != "none"]
    jump, proxy = first("proxyjump", "none"), first("proxycommand", "none")
    return Target(
        address=address,
        port=port,
        user=first("user") or getpass.getuser(),
        key_name=alias or address,
        key_port=22 if alias else port,
        known_hosts=_known_hosts_files(
            first("userknownhostsfile", USER_KNOWN_HOSTS), first("globalknownhostsfile", _GLOBAL_KNOWN_HOSTS)
        ),
        identity_files=tuple(Path(name).expanduser() for name in identities or _DEFAULT_KEYS),
        named_identity=host.identity_file is not None,
        identities_only=first("identitiesonly") == "yes",
        use_agent=first("identityagent") != "none",
        jump=None if jump == "none" else jump,
        proxy_command=None if proxy == "none" else proxy,
        connect_limit_s=float(timeout) if timeout.isdecimal() and int(timeout) > 0 else None,
        family=first("addressfamily", "any"),
        config_file=host.ssh_options.get("-F"),
    )


@lru_cache(maxsize=64)  # the same for nearly all hosts of a sweep
def _known_hosts_files(user: str, everybody: str) -> tuple[Path, ...]:
    """/dev/null as the only file is a way to switch checking off, which we do not: the user's own file is read then."""
    names = [name for name in shlex.split(user) if name not in ("/dev/null", "none")] or [USER_KNOWN_HOSTS]
    names += [name for name in shlex.split(everybody) if name != "none"]
    return tuple(Path(name).expanduser() for name in names)


def _said(host: Host) -> dict[str, list[str]]:
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


def _ssh_g_arguments(host: Host) -> Iterator[str]:
    yield "-G"
    if "-F" in host.ssh_options:
        yield from ("-F", host.ssh_options["-F"])
    for keyword, values in _said(host).items():
        yield from ("-o", f"{keyword}={values[0]}")


def _matters(file: Path, depth: int = 0) -> bool:
    """Whether an ssh_config file (or one it includes) says anything beyond the harmless."""
    try:
        lines = file.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return False
    for line in lines:
        keyword, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if not keyword or keyword.startswith("#"):
            continue
        if keyword.lower() not in HARMLESS:
            return True
        if keyword.lower() == "include" and any(_matters(part, depth + 1) for part in _included(file, rest, depth)):
            return True
    return False


def _included(file: Path, patterns: str, depth: int) -> Iterator[Path]:
    if depth > 16:  # OpenSSH's own limit of nesting
        return
    for pattern in patterns.split():
        path = Path(pattern.strip('"')).expanduser()
        yield from (Path(name) for name in glob.glob(str(path if path.is_absolute() else file.parent / path)))
