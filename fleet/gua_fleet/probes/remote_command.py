"""The command line a host is given: one plain command that every login shell reads alike. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from gua_fleet.model import Host

DEFAULT_AGENT = "/opt/gua/current/bin/gua"
AGENT_USER = "gua"
# One round trip finds the agent. No backslash, exclamation mark or newline: fish and csh read those differently in
# quotes. PATH of a non-interactive login is often shorter than that of a terminal, hence the absolute path first.
_SEARCH = (
    f"if [ -x {DEFAULT_AGENT} ]; then gua={DEFAULT_AGENT}; elif command -v gua >/dev/null 2>&1; then gua=gua; "
    f'else echo "no agent at {DEFAULT_AGENT} or on PATH" >&2; exit 127; fi; '
)
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_KILL_AFTER_S = "2"
_NONCE = re.compile(r"[0-9a-f]{32}")


def agent_argv(
    host: Host, arguments: Sequence[str], *, limit_s: float, as_agent_user: bool, sudo_reads: bool = False
) -> tuple[str, ...]:
    """The argument list that runs `gua ARGUMENTS` on this host, ended there after `limit_s` seconds.

    as_agent_user: through `sudo -n`, which never asks for a password; sudo_reads: it finds one on standard input.
    """
    guard = ("timeout", "-k", _KILL_AFTER_S, str(max(1, math.ceil(limit_s))))
    asking = ("-S", "-p", "") if sudo_reads else ("-n",)
    prefix = ("sudo", *asking, "-u", host.become_user or AGENT_USER, *guard) if as_agent_user else guard
    if host.gua_command:
        return (*prefix, *host.gua_command, *arguments)
    script = f'{_SEARCH}exec {command_line(prefix)} "$gua" "$@"'
    return ("/bin/sh", "-c", script, "gua", *arguments)


def ending_argv(command: str) -> tuple[str, ...] | None:
    """What ends `command` on its host from outside: by its nonce, 128 random bits, which are in the arguments of no
    process but those that the command started. None for a command that carries none.
    """
    nonce = command.rpartition(" ")[2]
    if not _NONCE.fullmatch(nonce):
        return None
    return ("pkill", "-TERM", "-f", f"[{nonce[0]}]{nonce[1:]}")  # a pattern that does not match itself


def command_line(argv: Sequence[str]) -> str:
    """One line that sh, bash, zsh, fish and csh all split back into `argv`.

    Raises ValueError for control characters: no quoting of a newline holds in all of them.
    """
    return " ".join(quote(argument) for argument in argv)


def quote(argument: str) -> str:
    """One argument. Quotes, backslashes and `!` stand outside the quotes, where all shells agree on them."""
    if not argument.isprintable():
        raise ValueError(f"no shell quoting holds everywhere for {argument!r}")
    if _PLAIN.fullmatch(argument) and not argument.startswith(("=", "~")):
        return argument
    parts = re.split(r"(['\\!])", argument)
    return "".join(f"\\{part}" if part in ("'", "\\", "!") else f"'{part}'" for part in parts if part) or "''"
