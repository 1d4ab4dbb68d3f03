"""A program of its own: lets Ansible read the inventory and says, as JSON, what it understood.

Only this file imports Ansible, and it imports nothing of ours, so that nothing of Ansible's state (signal handlers,
locale, warnings, half-read plugins) is ever in the controller. It goes through the same class as `ansible-inventory`
and hands each variable to the same templating as a task would, so both see the same hosts; unlike the two programs it
can tell for each variable of each host why it could not be resolved, in one process and one reading.

stdin:  {"arguments": [-i, -l, -e ... as for ansible-inventory], "names": [variable], "vault": {id: typed password}}
stdout: {"hosts": [{"name", "groups": [outermost first], "variables": {}, "problems": {variable or "": reason}}],
         "total": hosts before --limit, "settings": {variable: what ansible.cfg or the environment says instead}}
     or {"ask": vault id whose password has to be typed first} or {"error": reason}
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

_MANY = 100  # hosts; below that a second process costs more than it brings
_SETTINGS = {
    "remote_user": "ansible_user",
    "port": "ansible_port",
    "private_key_file": "ansible_private_key_file",
    "ssh_args": "ansible_ssh_args",
    "ssh_common_args": "ansible_ssh_common_args",
    "ssh_extra_args": "ansible_ssh_extra_args",
}
_CONSTANTS = {
    "DEFAULT_TRANSPORT": "ansible_connection",
    "DEFAULT_BECOME": "ansible_become",
    "DEFAULT_BECOME_METHOD": "ansible_become_method",
    "DEFAULT_BECOME_USER": "ansible_become_user",
}


class _AskFor(Exception):
    """The password of this vault id has to be typed first."""


def main() -> None:
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
    request = json.load(sys.stdin)
    answer_to = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a plugin prints is a message, not the answer
    try:
        answer = _read(request)
    except _AskFor as exc:
        answer = {"ask": exc.args[0]}
    except SystemExit as exc:
        answer = {"error": f"Ansible ended with {exc.code}"}
    except Exception as exc:  # noqa: BLE001 - a plugin may raise anything; it becomes the one line of the answer
        answer = {"error": _words(exc)}
    with answer_to:
        json.dump(answer, answer_to)


def _read(request: dict[str, Any]) -> dict[str, Any]:
    from ansible import cli, constants, context
    from ansible.cli.inventory import InventoryCLI
    from ansible.template import Templar
    from ansible.vars.hostvars import HostVars

    class Reader(InventoryCLI):  # type: ignore[misc]  # Ansible has no types
        def run(self) -> None:
            cli.CLI.run(self)  # parses the arguments and makes ready the plugins
            self.read = self._play_prereqs()

    cli.PromptVaultSecret = _typed(request["vault"])
    reader = Reader(["ansible-inventory", "--list", *request["arguments"]])
    reader.run()
    loader, inventory, variables = reader.read
    HostVars(inventory=inventory, variable_manager=variables, loader=loader)  # hangs itself in: for `hostvars[other]`
    total = len(inventory.list_hosts("all"))
    if context.CLIARGS["subset"]:
        inventory.subset(context.CLIARGS["subset"])
    order = list(inventory.groups)
    templar = Templar(loader=loader)  # one for all: each finds its filters anew
    asked = inventory.list_hosts("all")
    hosts = _on_two_cores(lambda host: _host(host, order, templar, variables, request["names"]), asked)
    return {"hosts": hosts, "total": total, "settings": _settings(constants)}


def _typed(passwords: dict[str, str]) -> type:
    """What Ansible takes a typed vault password from, without a terminal: what was typed before."""
    from ansible.parsing.vault import PromptVaultSecret

    class Typed(PromptVaultSecret):  # type: ignore[misc]  # Ansible has no types
        def load(self) -> None:
            if self.vault_id not in passwords:
                raise _AskFor(self.vault_id)
            self._bytes = passwords[self.vault_id].encode("utf-8")

    return Typed


def _on_two_cores(describe: Callable[[Any], dict[str, Any]], hosts: list[Any]) -> list[dict[str, Any]]:
    """All hosts described; the second half of many by a child, because templating is nearly all of the work."""
    middle = len(hosts) if len(hosts) < _MANY or (os.cpu_count() or 1) < 2 else len(hosts) // 2
    if middle == len(hosts):
        return [describe(host) for host in hosts]
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open(write_end, "w", encoding="utf-8") as pipe:
                json.dump([describe(host) for host in hosts[middle:]], pipe)
            os._exit(0)
        finally:
            os._exit(1)  # whatever happened: this process must never give the answer
    os.close(write_end)
    first = [describe(host) for host in hosts[:middle]]
    with open(read_end, encoding="utf-8") as pipe:
        text = pipe.read()
    whole = os.waitpid(child, 0)[1] == 0
    return first + (json.loads(text) if whole else [describe(host) for host in hosts[middle:]])


def _host(host: Any, order: list[str], templar: Any, variables: Any, names: list[str]) -> dict[str, Any]:
    groups = sorted((group for group in host.get_groups()), key=lambda group: (group.depth, order.index(group.name)))
    described: dict[str, Any] = {
        "name": host.name,
        "groups": [group.name for group in groups if group.name not in ("all", "ungrouped")],
        "variables": {},
        "problems": {},
    }
    try:
        values = variables.get_vars(host=host)
    except Exception as exc:  # noqa: BLE001 - a vars file of this host cannot be opened: that costs this host only
        described["problems"][""] = _words(exc)
        return described
    templar.available_variables = values
    for name in names:
        if name in values:
            try:
                value = _resolved(values[name], templar)
                if not (isinstance(value, str) and value == values.get("omit")):
                    described["variables"][name] = value
            except Exception as exc:  # noqa: BLE001 - undefined, a failing lookup, a vault value, a filter's own error
                if type(exc).__name__ != "AnsibleValueOmittedError":  # how newer cores say `omit`
                    described["problems"][name] = _words(exc)
    return described


def _resolved(value: Any, templar: Any) -> Any:
    """The value as a task would get it, as plain JSON."""
    if type(value) in (bool, int, float) or value is None:
        return value
    return json.loads(json.dumps(templar.template(value), default=str))


def _settings(constants: Any) -> dict[str, Any]:
    """What ansible.cfg and the environment say about connecting, by the variable that would say the same."""
    from ansible.plugins.loader import connection_loader

    connection_loader.get_with_context("ssh", class_only=True)  # makes the plugin's options known
    ask, found = constants.config.get_config_value_and_origin, {}
    for option, variable in _SETTINGS.items():
        value, origin = ask(option, plugin_type="connection", plugin_name="ssh")
        if value not in (None, "") and origin != "default":
            found[variable] = value
    for constant, variable in _CONSTANTS.items():
        value, origin = ask(constant)
        if value not in (None, "") and origin != "default":
            found[variable] = value
    return json.loads(json.dumps(found, default=str))  # type: ignore[no-any-return]


def _words(exc: BaseException) -> str:
    """The reason without the lines of the file around it, which may hold secrets."""
    text = str(getattr(exc, "message", None) or exc) or type(exc).__name__
    return " ".join(text.split("\nThe error appears to be in")[0].split("\nOrigin: ")[0].split())


if __name__ == "__main__":
    main()
