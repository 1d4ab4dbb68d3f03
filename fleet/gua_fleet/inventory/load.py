"""The hosts of an inventory, read by Ansible, so that the file ansible-playbook uses means the same here.

source -> Ansible, in a process of its own -> variables -> Hosts
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gua_fleet.errors import InventoryError
from gua_fleet.inventory.ansible_tools import ReadHost, Reading, read_with_ansible
from gua_fleet.inventory.hostvars import BECOME_PASSWORD, RELEVANT, host_from_variables, not_honoured, skipped_host
from gua_fleet.inventory.source import Source, find_source
from gua_fleet.inventory.vault_pipes import read_pipes
from gua_fleet.model import Host
from gua_fleet.prompt import ask_secret
from gua_fleet.secrets import Ask, Secret
from gua_fleet.show import one_line

_MOST_NAMES = 6
# What the parser of plain YAML says of a file that names an inventory plugin.
_IS_PLUGIN = "Plugin configuration YAML file"
OPEN_VAULT = "give --vault-password-file FILE, --vault-id or --ask-vault-pass"


@dataclass(frozen=True)
class Inventory:
    """hosts: every host, in inventory order, the skipped ones too. source: the inventory taken, and why, in words.

    warnings: one line each, of Ansible's parsers and of ours.
    """

    hosts: tuple[Host, ...]
    source: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Selection:
    """What goes to Ansible beside the inventory itself, as its own options take it.

    limit: a host pattern, or @FILE. extra_vars: `key=value`, JSON or @FILE each.
    """

    limit: str | None = None
    extra_vars: tuple[str, ...] = ()
    vault_password_files: tuple[str, ...] = ()
    vault_ids: tuple[str, ...] = ()
    ask_vault_password: bool = False

    def arguments(self) -> tuple[str, ...]:
        """The same as arguments; each with its value in one word, so that no value is taken for an option."""
        return (
            *((f"--limit={self.limit}",) if self.limit else ()),
            *(f"--extra-vars={text}" for text in self.extra_vars),
            *(f"--vault-password-file={Path(file).expanduser()}" for file in self.vault_password_files),
            *(f"--vault-id={text}" for text in self.vault_ids),
            *(("--ask-vault-password",) if self.ask_vault_password else ()),
        )

    def without_pipes(self) -> tuple[Selection, Mapping[str, Secret]]:
        """The same with its pipes read, and by vault id the passwords from them. Raises InventoryError."""
        files, ids, passwords = read_pipes(self.vault_password_files, self.vault_ids)
        return replace(self, vault_password_files=files, vault_ids=ids), passwords


def load_inventory(
    source: str | Source | None,
    *,
    limit: str | None = None,
    selection: Selection | None = None,
    ask: Ask = ask_secret,
) -> Inventory:
    """The inventory in `source` (a path, `host,` list or directory), or the one found without it.

    limit: short for a selection by host pattern alone. ask: who is asked for a vault password that has to be typed.
    Raises InventoryError when there is no host to speak of.
    """
    found = source if isinstance(source, Source) else find_source((source,) if source is not None else ())
    chosen, passwords = (selection or Selection(limit=limit)).without_pipes()
    try:
        reading = read_with_ansible((*found.arguments, *chosen.arguments()), RELEVANT, ask, passwords)
    except InventoryError as exc:
        raise InventoryError(f"{found.name}: {_with_cure(one_line(str(exc), width=300))}") from exc
    if not reading.hosts:
        raise InventoryError(_no_hosts(found, chosen.limit, reading))
    hosts = tuple(_host(host, reading) for host in reading.hosts)
    _refuse_if_all_are_locked(found, reading, hosts)
    return Inventory(hosts, found.words, (*reading.messages, *_our_warnings(hosts, reading)))


def _host(host: ReadHost, reading: Reading) -> Host:
    problems = {name: problem for name, problem in host.problems.items() if name not in BECOME_PASSWORD}
    if problems:
        name, problem = next(iter(problems.items()))
        what = f"{name} cannot be resolved" if name else "its variables cannot be read"
        return skipped_host(host.name, host.variables, host.groups, f"{what}: {_with_cure(one_line(problem))}")
    return host_from_variables(host.name, {**reading.settings, **host.variables}, host.groups)


def _with_cure(reason: str) -> str:
    return f"{reason}; {OPEN_VAULT}" if re.search("vault|decrypt", reason, re.IGNORECASE) else reason


def _refuse_if_all_are_locked(source: Source, reading: Reading, hosts: Sequence[Host]) -> None:
    """One line instead of one per host, where a password is missing that every host needs."""
    reasons = {host.skip_reason for host in hosts}
    if len(reasons) == 1 and OPEN_VAULT in (hosts[0].skip_reason or ""):
        raise InventoryError(f"{source.name}: no host can be used: {hosts[0].skip_reason}")


def _no_hosts(source: Source, limit: str | None, reading: Reading) -> str:
    if limit and reading.total:
        return f"{source.name} has no host that matches --limit {limit} (of {reading.total})"
    reason = _telling(reading.messages, source)
    because = f" ({reason})" if reason else ""
    return f"{source.name} holds no hosts: write them as in inventory.example.yml{because}"


def _telling(messages: Sequence[str], source: Source) -> str:
    """The message that helps most: Ansible tries every parser on a file and tells what each of them thought."""
    parser = "yaml" if source.name.endswith((".yml", ".yaml", ".json")) else "ini"
    located = [message for message in messages if re.search(r"line \d+|:\d+:\d+", message)]
    ran = _of_parser("script", messages)  # where it is a program, nobody else knows why it gave no hosts
    named = _of_parser("auto", messages) if any(_IS_PLUGIN in message for message in messages) else []
    chosen = next(iter([*ran, *named, *located, *_of_parser(parser, messages), *messages]), "")
    place = re.search(r"Origin: (\S+:\d+:\d+)|(line \d+, column \d+)", chosen)
    said = re.sub(r"^\W*(WARNING|ERROR)\W*(Failed to parse .*? with '?\w+'? plugin: )?", "", chosen)
    text = re.split(r"\.? Failed to parse inventory| <<< caused", said)[0]
    return one_line(text, width=200) + (f", at {place.group(1) or place.group(2)}" if place else "")


def _of_parser(parser: str, messages: Sequence[str]) -> list[str]:
    return [message for message in messages if re.search(rf"\b{parser}'? plugin", message)]


def _our_warnings(hosts: Sequence[Host], reading: Reading) -> Iterator[str]:
    read = {host.name: host for host in reading.hosts}
    skipped: dict[str, list[Host]] = {}
    for host in hosts:
        if host.skip_reason:
            skipped.setdefault(host.skip_reason, []).append(host)
    for reason, same in skipped.items():
        yield f"{_who(same)} skipped: {reason}"
    notes: Counter[str] = Counter()
    for host in hosts:
        if not host.skip_reason:
            notes.update(not_honoured({**reading.settings, **read[host.name].variables}))
            notes.update(
                f"{name} cannot be resolved: {_with_cure(one_line(problem))}"
                for name, problem in read[host.name].problems.items()
            )
    for text, count in notes.items():
        yield f"{text} ({count} host{'' if count == 1 else 's'})"
    yield from _doubles(hosts)


def _who(hosts: Sequence[Host]) -> str:
    if len(hosts) == 1:
        (host,) = hosts
        return f"{host.name} (in {', '.join(host.groups)}) is" if host.groups else f"{host.name} is"
    named = ", ".join(host.name for host in hosts[:_MOST_NAMES])
    return f"{named} are" if len(hosts) <= _MOST_NAMES else f"{named} and {len(hosts) - _MOST_NAMES} more are"


def _doubles(hosts: Sequence[Host]) -> Iterator[str]:
    """Two names for one address would count its cards twice, unless the agents there tell that they are one."""
    names: dict[tuple[str, int | None, str | None], list[str]] = {}
    for host in hosts:
        if not host.skip_reason and host.connection == "ssh":
            names.setdefault((host.address, host.port, host.jump or host.proxy_command), []).append(host.name)
    for (address, _, _), same in names.items():
        if len(same) > 1:
            yield f"{', '.join(same)} have the same address {address}: one machine under several names?"
