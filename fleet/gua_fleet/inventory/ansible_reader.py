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
from typing import Any

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
    _compile_each_template_once()
    hosts = [_host(host, order, templar, variables, request["names"]) for host in inventory.list_hosts("all")]
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


def _compile_each_template_once() -> None:
    """Most hosts share the text of their templates, and compiling it is most of the work of resolving them.

    Only what depends on nothing but the text and the kind of environment is kept, as Jinja's own caches do: no
    overlay with options of its own, and no backslash, which some callers want escaped and others not.
    """
    from jinja2 import Environment

    compile_anew = Environment.compile
    compiled: dict[tuple[type, str], Any] = {}

    def compile_once(self: Any, source: Any, *options: Any, **named: Any) -> Any:
        if options or named or self.overlayed or not isinstance(source, str) or "\\" in source:
            return compile_anew(self, source, *options, **named)
        key = (type(self), source)
        if key not in compiled:
            compiled[key] = compile_anew(self, source)
        return compiled[key]

    Environment.compile = compile_once  # type: ignore[method-assign]


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
