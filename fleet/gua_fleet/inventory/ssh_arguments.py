"""Reads what an inventory gives to `ssh` as arguments (`ansible_ssh_common_args` and friends). Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# ssh(1): letters that take a value, and the ssh_config keyword the value belongs to where there is one.
_WITH_VALUE: dict[str, str | None] = {
    **dict.fromkeys("BbcDEeILmOPQRSWw"),
    "F": "-F",
    "i": "identityfile",
    "J": "proxyjump",
    "l": "user",
    "o": "",
    "p": "port",
}
_SWITCHES = {"4": ("addressfamily", "inet"), "6": ("addressfamily", "inet6")}

# Keywords of ssh_config that decide here, as in ssh, which host is reached, as whom, through what, and its trust.
HONOURED = frozenset(
    {"-F", "hostname", "port", "user", "identityfile", "identitiesonly", "identityagent", "proxyjump", "proxycommand"}
    | {"userknownhostsfile", "globalknownhostsfile", "hostkeyalias", "connecttimeout", "addressfamily"}
    | {"revokedhostkeys"}
)
# Keywords that change nothing about those questions.
HARMLESS = frozenset(
    {"host", "include", "sendenv", "setenv", "hashknownhosts", "gssapiauthentication", "gssapidelegatecredentials"}
    | {"forwardx11", "forwardx11trusted", "forwardagent", "compression", "loglevel", "escapechar", "requesttty"}
    | {"serveraliveinterval", "serveralivecountmax", "controlmaster", "controlpath", "controlpersist", "tcpkeepalive"}
    | {"addkeystoagent", "visualhostkey", "updatehostkeys", "batchmode", "stricthostkeychecking", "checkhostip"}
    | {"passwordauthentication", "kbdinteractiveauthentication", "preferredauthentications", "pubkeyauthentication"}
)


@dataclass(frozen=True)
class SshArguments:
    """options: ssh_config keyword in lower case -> value, first one wins as in ssh; `-F` keeps its own name.

    unknown: arguments that mean nothing here, as written.
    """

    options: Mapping[str, str]
    unknown: tuple[str, ...] = ()


def parse_ssh_arguments(text: str) -> SshArguments:
    """The settings in one string of ssh arguments. Raises ValueError when its quotes do not close."""
    options: dict[str, str] = {}
    unknown: list[str] = []
    for keyword, value in _settings(iter(shlex.split(text)), unknown):
        options.setdefault(keyword, value)
        # ssh takes whichever of the two comes first and ignores the other
        if keyword in ("proxyjump", "proxycommand"):
            options.setdefault({"proxyjump": "proxycommand", "proxycommand": "proxyjump"}[keyword], "none")
    return SshArguments(options, tuple(unknown))


def _settings(words: Iterator[str], unknown: list[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        if not word.startswith("-") or len(word) < 2:
            unknown.append(word)
            continue
        yield from _one_word(word, words, unknown)


def _one_word(word: str, words: Iterator[str], unknown: list[str]) -> Iterator[tuple[str, str]]:
    """Settings of `-Avi key`, `-p2222`, `-oKey=value`: clustered switches, then at most one value."""
    for position, letter in enumerate(word[1:], start=1):
        if letter in _SWITCHES:
            yield _SWITCHES[letter]
        if letter in _WITH_VALUE:
            value = word[position + 1 :] or next(words, "")
            keyword = _WITH_VALUE[letter]
            if letter == "o":
                yield _option(value)
            elif keyword is None:
                unknown.append(f"-{letter} {value}")
            else:
                yield keyword, value
            return


def _option(text: str) -> tuple[str, str]:
    """`Key=value`, `Key value` and `Key = value` as ssh's -o takes them; quotes around the value fall."""
    keyword, _, value = text.strip().replace("\t", " ").replace("=", " ", 1).partition(" ")
    value = value.strip().lstrip("=").strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    return keyword.lower(), value
