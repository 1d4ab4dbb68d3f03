"""The hosts of an inventory, read by Ansible, so that the file ansible-playbook uses means the same here.

    source -> ansible-inventory --list -> (ansible localhost, only when something is templated) -> Hosts

Order: as in the file. Ansible's list keeps the order of hosts within a group and of groups within their parent,
so the groups are walked from `all`, ungrouped hosts first, and a host counts where it is met first.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gua_fleet.errors import InventoryError
from gua_fleet.inventory.ansible_tools import AnsibleAnswer, run_ansible
from gua_fleet.inventory.hostvars import Variables, host_from_variables, ignored_arguments, skipped_host
from gua_fleet.inventory.source import Source, find_source
from gua_fleet.inventory.templating import resolve_variables
from gua_fleet.model import Host
from gua_fleet.show import one_line


@dataclass(frozen=True)
class Inventory:
    """hosts: every host, in inventory order, the skipped ones too. source: the inventory taken, and why, in words.

    warnings: one line each, of Ansible's parsers and of ours.
    """

    hosts: tuple[Host, ...]
    source: str
    warnings: tuple[str, ...] = ()


def load_inventory(source: str | None, *, limit: str | None = None) -> Inventory:
    """The inventory in `source` (a path, `host,` list or directory), or the one found without it.

    limit: an Ansible host pattern. Raises InventoryError when there is no host to speak of.
    """
    found = find_source(source)
    arguments = [*found.arguments, *(("--limit", limit) if limit else ())]
    listed = run_ansible("ansible-inventory", ["--list", *arguments])
    document = _document(listed, found)
    groups = {name: group for name, group in document.items() if name != "_meta" and isinstance(group, Mapping)}
    names = tuple(dict.fromkeys(_walk("all", groups, frozenset())))
    if not names:
        raise InventoryError(_no_hosts(found, limit, listed))
    raw = document.get("_meta", {}).get("hostvars", {})
    resolved = resolve_variables({name: raw.get(name, {}) for name in names}, found.arguments)
    memberships = _memberships(groups)
    hosts = tuple(
        host_from_variables(name, resolved.variables[name], memberships.get(name, ()))
        if name in resolved.variables
        else skipped_host(name, raw.get(name, {}), memberships.get(name, ()), resolved.unresolved[name])
        for name in names
    )
    return Inventory(hosts, found.words, (*listed.messages, *_our_warnings(hosts, resolved.variables)))


def _document(answer: AnsibleAnswer, source: Source) -> dict[str, Any]:
    if answer.exit_status != 0:
        raise InventoryError(_unreadable(source, answer))
    try:
        document = json.loads(answer.stdout)
    except ValueError as exc:
        raise InventoryError(f"{source.name}: ansible-inventory did not answer with JSON") from exc
    if not isinstance(document, dict):
        raise InventoryError(f"{source.name}: ansible-inventory did not answer with an inventory")
    return document


def _unreadable(source: Source, answer: AnsibleAnswer) -> str:
    reason = _telling(answer.messages[::-1], source) or f"ansible-inventory ended with {answer.exit_status}"
    if "vault" in reason.lower():
        return f"{source.name}: a vault password is needed: set ANSIBLE_VAULT_PASSWORD_FILE ({reason})"
    return f"{source.name}: {reason}"


def _no_hosts(source: Source, limit: str | None, answer: AnsibleAnswer) -> str:
    if limit:
        return f"{source.name} has no host that matches --limit {limit}"
    reason = _telling(answer.messages, source)
    because = f" ({reason})" if reason else ""
    return f"{source.name} holds no hosts: write them as in inventory.example.yml{because}"


def _telling(messages: Sequence[str], source: Source) -> str:
    """The message that helps most: Ansible tries every parser on a file and tells what each of them thought."""
    parser = "yaml" if source.name.endswith((".yml", ".yaml", ".json")) else "ini"
    located = [message for message in messages if re.search(r"line \d+|:\d+:\d+", message)]
    about = [message for message in messages if re.search(rf"\b{parser}'? plugin", message)]
    chosen = next(iter([*located, *about, *messages]), "")
    place = re.search(r"Origin: (\S+:\d+:\d+)|(line \d+, column \d+)", chosen)
    said = re.sub(r"^\W*(WARNING|ERROR)\W*(Failed to parse .*? with '?\w+'? plugin: )?", "", chosen)
    text = re.split(r"\.? Failed to parse inventory| <<< caused", said)[0]
    return one_line(text, width=200) + (f", at {place.group(1) or place.group(2)}" if place else "")


def _walk(group: str, groups: Mapping[str, Any], above: frozenset[str]) -> Iterator[str]:
    body = groups.get(group, {})
    yield from body.get("hosts", ())
    for child in body.get("children", ()):
        if child not in above:
            yield from _walk(child, groups, above | {group})


def _memberships(groups: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Host -> every group it is in, parents too, outermost first, without `all` and `ungrouped`."""
    members: dict[str, list[str]] = {}
    for name in _walk_groups("all", groups, frozenset()):
        for host in dict.fromkeys(_walk(name, groups, frozenset())):
            if name not in members.setdefault(host, []):
                members[host].append(name)
    return {host: tuple(names) for host, names in members.items()}


def _walk_groups(group: str, groups: Mapping[str, Any], above: frozenset[str]) -> Iterator[str]:
    if group not in ("all", "ungrouped"):
        yield group
    for child in groups.get(group, {}).get("children", ()):
        if child not in above:
            yield from _walk_groups(child, groups, above | {group})


def _our_warnings(hosts: Sequence[Host], variables: Mapping[str, Variables]) -> Iterator[str]:
    for host in hosts:
        if host.skip_reason:
            where = f" (in {', '.join(host.groups)})" if host.groups else ""
            yield f"{host.name}{where} is skipped: {host.skip_reason}"
    ignored = Counter(
        text for host in hosts if not host.skip_reason for text in ignored_arguments(variables[host.name])
    )
    for text, count in ignored.items():
        yield f"ssh argument {text} is not honoured ({count} hosts)"
