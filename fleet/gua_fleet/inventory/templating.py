"""Resolves templated inventory variables: one Ansible call for the whole fleet, and only when one is needed.

Tried: on ansible-core 2.19 and later a variable that cannot be resolved (undefined, or a vault value without its
password) vanishes from the answer in silence; on 2.17 it stays as written or fails the whole call. So the answer is
compared with the list, and a failing call is halved until the host that fails it is alone.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gua_fleet.inventory.ansible_tools import AnsibleAnswer, run_ansible
from gua_fleet.inventory.hostvars import RELEVANT
from gua_fleet.show import one_line

Variables = Mapping[str, Any]

# The prefix keeps older cores from turning text that looks like JSON into something else.
_MARK = "gua-fleet:"
_WALK = (
    _MARK + "{% set out = {} %}{% for host in gua_fleet_hosts %}{% set found = {} %}"
    "{% for name in gua_fleet_names %}{% if name in hostvars[host] %}"
    "{% set _ = found.update({name: hostvars[host][name]}) %}{% endif %}{% endfor %}"
    "{% set _ = out.update({host: found}) %}{% endfor %}{{ out | to_json }}"
)
# Halving finds one bad host among a thousand in about 20 calls of a second each; beyond this the patience ends.
_MOST_CALLS = 40


@dataclass
class Resolved:
    """variables: per host, ready for use. unresolved: per host without variables, the reason it is skipped for."""

    variables: dict[str, Variables] = field(default_factory=dict)
    unresolved: dict[str, str] = field(default_factory=dict)


def resolve_variables(raw: Mapping[str, Variables], source_arguments: Sequence[str]) -> Resolved:
    """Every host of `raw` in exactly one of the two maps; only variables that mean something here are kept."""
    relevant = {host: {name: values[name] for name in RELEVANT if name in values} for host, values in raw.items()}
    templated = [host for host, values in relevant.items() if any(map(_needs_resolving, values.values()))]
    resolved = Resolved({host: values for host, values in relevant.items() if host not in set(templated)})
    if templated:
        _Resolver(relevant, source_arguments, resolved).resolve(templated)
    return resolved


class _Resolver:
    def __init__(self, raw: Mapping[str, Variables], source_arguments: Sequence[str], resolved: Resolved) -> None:
        self._raw = raw
        self._arguments = source_arguments
        self._resolved = resolved
        self._calls = 0

    def resolve(self, hosts: Sequence[str]) -> None:
        if self._calls >= _MOST_CALLS:
            self._give_up(hosts, "its variables cannot be resolved (too many hosts of this inventory cannot)")
            return
        self._calls += 1
        answer = self._ask(hosts)
        found = _found(answer)
        if found is not None:
            for host in hosts:
                self._accept(host, found.get(host, {}))
        elif len(hosts) == 1:
            self._give_up(hosts, f"its variables cannot be resolved: {_reason(answer)}")
        else:
            middle = len(hosts) // 2
            self.resolve(hosts[:middle])
            self.resolve(hosts[middle:])

    def _ask(self, hosts: Sequence[str]) -> AnsibleAnswer:
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump({"gua_fleet_hosts": list(hosts), "gua_fleet_names": RELEVANT}, file)
            file.flush()
            message = json.dumps({"msg": _WALK})
            return run_ansible(
                "ansible", ["localhost", *self._arguments, "-e", f"@{file.name}", "-m", "debug", "-a", message]
            )

    def _accept(self, host: str, found: Variables) -> None:
        for name, value in self._raw[host].items():
            if _needs_resolving(value) and (name not in found or _still_templated(value, found[name])):
                self._give_up([host], f"{name} cannot be resolved: {_written(value)}")
                return
        self._resolved.variables[host] = found

    def _give_up(self, hosts: Sequence[str], reason: str) -> None:
        self._resolved.unresolved.update(dict.fromkeys(hosts, reason))


def _needs_resolving(value: Any) -> bool:
    """Whether a variable as listed is a template, or a vault or `!unsafe` value, at any depth."""
    if isinstance(value, str):
        return "{{" in value or "{%" in value
    if isinstance(value, Mapping):
        return any(str(key).startswith("__ansible_") for key in value) or any(map(_needs_resolving, value.values()))
    return isinstance(value, list) and any(map(_needs_resolving, value))


def _still_templated(written: Any, found: Any) -> bool:
    # An !unsafe text may well hold braces, but it is listed as a mapping and so never equals what was found.
    return bool(written == found)


def _written(value: Any) -> str:
    """A variable as the inventory has it, for its owner to find; a vault value is not shown."""
    if isinstance(value, Mapping) and "__ansible_vault" in value:
        return "a vault value; set ANSIBLE_VAULT_PASSWORD_FILE"
    return f"{one_line(str(value))} (is a variable in it undefined?)"


def _found(answer: AnsibleAnswer) -> dict[str, Variables] | None:
    """host -> variables, None when the call failed."""
    body = _body(answer)
    if answer.exit_status != 0 or not str(body.get("msg", "")).startswith(_MARK):
        return None
    found = json.loads(str(body["msg"])[len(_MARK) :])
    return found if isinstance(found, dict) else None


def _reason(answer: AnsibleAnswer) -> str:
    message = _body(answer).get("msg") or (answer.messages[-1] if answer.messages else "Ansible gives no reason")
    cure = "; set ANSIBLE_VAULT_PASSWORD_FILE" if "vault" in str(message).lower() else ""
    return one_line(str(message)) + cure


def _body(answer: AnsibleAnswer) -> dict[str, Any]:
    """The result in `localhost | SUCCESS => {...}`; empty when there is none."""
    _, _, text = answer.stdout.partition("=>")
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
