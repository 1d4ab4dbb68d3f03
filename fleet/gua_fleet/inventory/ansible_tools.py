"""Runs Ansible on the inventory, in a process of its own, and gives back what it read. The only door to Ansible."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gua_fleet.errors import FleetError, InventoryError
from gua_fleet.prompt import ask_secret
from gua_fleet.secrets import Ask, Secret

# Plain, stable output whatever the site's ansible.cfg asks for; deprecations are not the reader's business here.
_PLAIN_OUTPUT = {
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_FORCE_COLOR": "0",
    "ANSIBLE_DEPRECATION_WARNINGS": "0",
    "ANSIBLE_LOCALHOST_WARNING": "0",
    "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
    "PYTHONIOENCODING": "utf-8",  # else a name beyond the site's encoding comes as question marks, like any other
}
# A dynamic inventory may ask a slow service; a hung one must not hang the run.
_LIMIT_S = 120.0
_HEADED = re.compile(r"\[?(WARNING|ERROR|DEPRECATION WARNING)\]?(: |!)")
_READER = Path(__file__).with_name("ansible_reader.py")
NO_VAULT = "give --vault-password-file FILE, or --vault-id NAME@FILE, instead"


@dataclass(frozen=True)
class ReadHost:
    """One host as Ansible sees it. groups: outermost first, without `all` and `ungrouped`. variables: resolved.

    problems: variable -> why it could not be resolved; under "" why none could.
    """

    name: str
    groups: tuple[str, ...]
    variables: Mapping[str, Any]
    problems: Mapping[str, str]


@dataclass(frozen=True)
class Reading:
    """hosts: those that match the limit, in Ansible's order. total: those of the whole inventory.

    settings: what ansible.cfg and the environment say where a host's variables do not, by variable.
    messages: Ansible's warnings and errors, one line each.
    """

    hosts: tuple[ReadHost, ...]
    total: int
    settings: Mapping[str, Any]
    messages: tuple[str, ...]


def read_with_ansible(
    arguments: Sequence[str],
    names: Sequence[str],
    ask: Ask = ask_secret,
    passwords: Mapping[str, Secret] = MappingProxyType({}),
) -> Reading:
    """The inventory that `arguments` (of `ansible-inventory`) choose, with the variables `names` of each host.

    passwords: those that nobody has to be asked for, by vault id. Another one that has to be typed is asked for, once.
    Raises InventoryError with Ansible's reason when the inventory as a whole cannot be read, FleetError when Ansible
    cannot be run or does not end within two minutes.
    """
    request: dict[str, Any] = {"arguments": list(arguments), "names": list(names)}
    request["vault"] = {name: password.reveal for name, password in passwords.items()}
    answer, messages = _run(request)
    while answer.get("ask") and answer["ask"] not in request["vault"]:
        request["vault"][answer["ask"]] = ask(_vault_prompt(answer["ask"]), NO_VAULT).reveal
        answer, messages = _run(request)
    if "hosts" not in answer:
        raise InventoryError(str(answer.get("error", "Ansible goes on asking for a vault password")))
    hosts = tuple(
        ReadHost(host["name"], tuple(host["groups"]), host["variables"], host["problems"]) for host in answer["hosts"]
    )
    return Reading(hosts, answer["total"], answer["settings"], messages)


def split_messages(stderr: str) -> tuple[str, ...]:
    """Ansible's warnings and errors, each on one line: it wraps them at 79 columns.

    The lines of the file that it shows around a mistake are left out: a password may be among them.
    """
    messages: list[list[str]] = []
    quoting = False
    for line in stderr.splitlines():
        if _HEADED.match(line) or not messages:
            messages.append([])
            quoting = False
        if line.startswith("<<< caused by"):
            quoting = False
        if line.startswith("The offending line"):
            quoting = True
        if not quoting:
            messages[-1].append(line.strip())
        if line.startswith("Origin: "):
            quoting = True
    lines = (" ".join(word for word in message if word) for message in messages)
    return tuple(dict.fromkeys(line for line in lines if line))


def _vault_prompt(name: str) -> str:
    return "vault password" if name == "default" else f"vault password ({name})"


def _run(request: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The reader's answer, and what Ansible said on the way."""
    try:
        done = subprocess.run(
            [sys.executable, str(_READER)],
            input=json.dumps(request).encode("utf-8"),
            env={**os.environ, **_PLAIN_OUTPUT},
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise FleetError(f"Ansible did not end within {_LIMIT_S:.0f} s: is a dynamic inventory hanging?") from exc
    except OSError as exc:
        raise FleetError(f"{sys.executable} cannot be started: {exc.strerror}") from exc
    messages = split_messages(done.stderr.decode("utf-8", "replace"))
    try:
        answer = json.loads(done.stdout)
    except ValueError as exc:
        reason = messages[-1] if messages else f"it ended with {done.returncode}"
        raise FleetError(f"Ansible could not read the inventory: {reason}") from exc
    return answer, messages
