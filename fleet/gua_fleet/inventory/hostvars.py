"""Turns one host's resolved inventory variables into a `Host`. Pure; the rules are those of Ansible's ssh plugin."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gua_fleet.inventory.ssh_arguments import HARMLESS, HONOURED, SshArguments, parse_ssh_arguments
from gua_fleet.model import Host
from gua_fleet.secrets import Secret

Variables = Mapping[str, Any]

# Later names win where both are set, as in Ansible's ssh connection plugin.
ADDRESS = ("ansible_host", "ansible_ssh_host")
PORT = ("ansible_port", "ansible_ssh_port")
USER = ("ansible_user", "ansible_ssh_user")
KEY = ("ansible_private_key_file", "ansible_ssh_private_key_file")
ARGUMENTS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
PASSWORD = ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password")
PASSPHRASE = ("ansible_private_key_passphrase", "ansible_ssh_private_key_passphrase")
BECOME_USER = ("ansible_become_user", "ansible_sudo_user")
BECOME_PASSWORD = ("ansible_become_password", "ansible_become_pass", "ansible_sudo_pass")
KEY_CHECKING = ("ansible_host_key_checking", "ansible_ssh_host_key_checking")
OURS = ("gua_command", "gua_scheduler", "gua_maintenance", "gua_cards")
RELEVANT = (
    *(*ADDRESS, *PORT, *USER, *KEY, *ARGUMENTS, *PASSWORD, *PASSPHRASE, *KEY_CHECKING, "ansible_connection"),
    *("ansible_become", "ansible_become_method", *BECOME_USER, *BECOME_PASSWORD, *OURS),
)

_SSH_CONNECTIONS = {"ssh", "smart", "paramiko", "paramiko_ssh", "openssh"}
_TRUE = {"true", "yes", "on", "1", "y", "t"}
_FALSE = {"false", "no", "off", "0", "n", "f", "", "none"}
_BRACKETED_IPV6 = re.compile(r"\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]")
_UNSAFE_ADDRESS = re.compile(r"[\s\[\]{}\x00-\x1f\x7f'\"`$;&|<>\\@]")


class BadVariable(ValueError):
    """One variable of one host cannot be used; the message is the reason the host is skipped for."""


def host_from_variables(name: str, variables: Variables, groups: tuple[str, ...] = ()) -> Host:
    """The host to connect to. A variable that makes no sense gives a host with `skip_reason`, never an error."""
    try:
        return _host(name, variables, groups)
    except BadVariable as exc:
        return skipped_host(name, variables, groups, str(exc))


def skipped_host(name: str, variables: Variables, groups: tuple[str, ...], reason: str) -> Host:
    """A host that will not be connected to. Its cards are still expected, where the inventory says how many."""
    try:
        cards = _cards(variables)
    except BadVariable:
        cards = None
    return Host(name=name, address=name, groups=groups, cards=cards, skip_reason=reason)


def not_honoured(variables: Variables) -> tuple[str, ...]:
    """What a usable host asks for that is not done here, as sentences for a warning."""
    sentences = [f"ssh argument {words} is not honoured" for words in _ignored_arguments(variables)]
    for name in KEY_CHECKING:
        if str(variables.get(name, True)).strip().lower() in _FALSE:
            sentences.append(f"{name} is not honoured: host keys are always checked, see --accept-new")
    method = _text(variables, "ansible_become_method")
    if not _sudo(method) and _boolean(variables, "ansible_become"):
        sentences.append(
            f"ansible_become_method {method} is not supported (sudo is): there gua runs as the log-in user"
        )
    return tuple(sentences)


def _ignored_arguments(variables: Variables) -> tuple[str, ...]:
    ignored: list[str] = []
    for name in ARGUMENTS:
        arguments = _arguments(variables, name)
        ignored += arguments.unknown
        ignored += [keyword for keyword in arguments.options if keyword not in HONOURED and keyword not in HARMLESS]
    return tuple(dict.fromkeys(ignored))


def unusable_name(name: str) -> str | None:
    """Why this can be no host name or address, or None when it can.

    A YAML list of bare lines parses to one host with blanks; `node[1:3` and `{{ x }}` were never expanded;
    a leading dash would be an option to ssh.
    """
    if "{{" in name or "{%" in name:
        return f"{name!r} is a template that was not resolved"
    if " " in name:
        return f"{name!r} holds blanks: in YAML each host is a key, `name:`, on a line of its own"
    if not name or name.startswith("-") or _UNSAFE_ADDRESS.search(name):
        return f"{name!r} cannot be a host name (brackets, quotes, a leading dash or an @)"
    return None


def _host(name: str, variables: Variables, groups: tuple[str, ...]) -> Host:
    address = _address(name, variables)
    connection = _connection(variables)
    options = _ssh_options(variables)
    jump, proxy_command = _not_none(options.pop("proxyjump", None)), _not_none(options.pop("proxycommand", None))
    maintenance = _maintenance(variables)
    return Host(
        name=name,
        address=address,
        port=_port(options.pop("port", None)),
        user=options.pop("user", None),
        connection="local" if connection == "local" else "ssh",
        identity_file=options.pop("identityfile", None),
        jump=jump,
        proxy_command=proxy_command,
        ssh_options=options,
        groups=groups,
        gua_command=_command(variables),
        become=_boolean(variables, "ansible_become") and _sudo(_text(variables, "ansible_become_method")),
        become_user=_become_user(variables),
        password=_secret(variables, PASSWORD),
        become_password=_secret(variables, BECOME_PASSWORD),
        passphrase=_secret(variables, PASSPHRASE),
        scheduler=_text(variables, "gua_scheduler"),
        maintenance=maintenance,
        cards=_cards(variables),
    )


def _last_text(variables: Variables, names: tuple[str, ...]) -> str | None:
    values = [_text(variables, name) for name in names]
    return next((value for value in reversed(values) if value is not None), None)


def _text(variables: Variables, name: str) -> str | None:
    value = variables.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, Mapping) and "__ansible_unsafe" in value:
        return str(value["__ansible_unsafe"])
    if isinstance(value, bool | Mapping | list | tuple):
        raise BadVariable(f"{name} must be text, not {value!r}" if not isinstance(value, Mapping) else _odd(name))
    return str(value)


def _secret(variables: Variables, names: tuple[str, ...]) -> Secret | None:
    """The last of these that is set. What is wrong with one is said without showing it."""
    found = None
    for name in names:
        value = variables.get(name)
        if value is not None and value != "":
            if isinstance(value, bool | Mapping | list | tuple):
                raise BadVariable(f"{name} must be text")
            found = Secret(str(value))
    return found


def _sudo(method: str | None) -> bool:
    return method in (None, "sudo", "ansible.builtin.sudo", "community.general.sudo")


def _become_user(variables: Variables) -> str | None:
    """The account to become, None where Ansible's default stands: there the agent's own account is the one to be."""
    user = _last_text(variables, BECOME_USER)
    if user is not None and (user.startswith("-") or not user.isprintable() or " " in user):
        raise BadVariable(f"{user!r} cannot be a user's name (ansible_become_user)")
    return None if user == "root" else user


def _odd(name: str) -> str:
    return f"{name} is no plain text (a mapping, or a vault value that was not decrypted)"


def _address(name: str, variables: Variables) -> str:
    text = _last_text(variables, ADDRESS) or name
    bracketed = _BRACKETED_IPV6.fullmatch(text)
    address = bracketed.group(1) if bracketed else text
    for candidate in dict.fromkeys((name, address)):
        problem = unusable_name(candidate)
        if problem:
            raise BadVariable(problem)
    return address


def _connection(variables: Variables) -> str:
    connection = (_text(variables, "ansible_connection") or "ssh").removeprefix("ansible.builtin.")
    if connection != "local" and connection not in _SSH_CONNECTIONS:
        raise BadVariable(f"ansible_connection {connection!r} is not supported (ssh and local are)")
    return connection


def _ssh_options(variables: Variables) -> dict[str, str]:
    """All ssh settings of the host, first one wins, in the order in which Ansible puts them on ssh's command line."""
    before, *after = [_arguments(variables, name).options for name in ARGUMENTS]
    named = {"port": _last_text(variables, PORT), "identityfile": _last_text(variables, KEY)}
    named["user"] = _last_text(variables, USER)
    merged: dict[str, str] = {}
    for options in (before, {key: value for key, value in named.items() if value is not None}, *after):
        for keyword, value in options.items():
            merged.setdefault(keyword, value)
    return merged


def _arguments(variables: Variables, name: str) -> SshArguments:
    text = _text(variables, name)
    try:
        return parse_ssh_arguments(text) if text else SshArguments({})
    except ValueError as exc:
        raise BadVariable(f"{name} cannot be read: {exc}") from exc


def _not_none(value: str | None) -> str | None:
    return None if value is None or value.lower() == "none" else value


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise BadVariable(f"{text!r} is not a port number")
    return int(text)


def _boolean(variables: Variables, name: str) -> bool:
    value = str(variables.get(name, "")).strip().lower()
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise BadVariable(f"{name} must be true or false, not {value!r}")


def _command(variables: Variables) -> tuple[str, ...]:
    """`gua_command` as an argument list; a path is one argument, never a shell line."""
    value = variables.get("gua_command")
    words = (value,) if isinstance(value, str) else tuple(value or ())
    if not all(isinstance(word, str) and word.isprintable() for word in words):
        raise BadVariable("gua_command must be an absolute path or a list of arguments")
    if isinstance(value, str) and not value.startswith("/"):
        raise BadVariable(f"gua_command {value!r} must be an absolute path or a list of arguments")
    return words


def _maintenance(variables: Variables) -> str | None:
    """The reason given with `gua_maintenance`; `true` alone is a reason too."""
    value = variables.get("gua_maintenance")
    if value is None or str(value).strip().lower() in _FALSE:
        return None
    return "gua_maintenance is set" if str(value).strip().lower() in _TRUE else str(value)


def _cards(variables: Variables) -> int | None:
    value = variables.get("gua_cards")
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not str(value).isdecimal():
        raise BadVariable(f"gua_cards must be a whole number, not {value!r}")
    return int(str(value))
