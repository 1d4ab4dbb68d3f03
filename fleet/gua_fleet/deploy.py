"""Our playbooks: where they lie, and the command that runs one of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from gua.errors import GuaError
from gua_fleet.agent_wheel import find_checkout
from gua_fleet.inventory.source import ansible_configs
from gua_fleet.python import module_command

# Command -> playbook. `gua-fleet status` asks the agents over SSH as an ordinary user; `verify` asks the hosts as root.
PLAYBOOKS = {
    "preflight": "preflight",
    "deploy": "deploy",
    "upgrade": "upgrade",
    "verify": "status",
    "rollback": "rollback",
    "undeploy": "undeploy",
    "enroll": "enroll",
    "wheelhouse": "wheelhouse",
}
# These concern this machine alone.
WITHOUT_HOSTS = ("wheelhouse",)


class PlaybooksMissing(GuaError):
    """This installation has no playbooks; the message says what to do."""


def playbook_folder(checkout: Path | None) -> Path:
    """Where the playbooks lie: in the checkout this code runs from, else in the installed package.

    Raises PlaybooksMissing.
    """
    folder = checkout / "ansible" if checkout is not None else Path(__file__).with_name("ansible")
    if not (folder / "deploy.yml").is_file():
        raise PlaybooksMissing(f"no playbooks in {folder}: install gua-fleet anew")
    return folder


def playbook_command(name: str, inventory: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """What runs the playbook of command `name`. inventory, arguments: as `ansible-playbook` takes them."""
    playbook = playbook_folder(find_checkout()) / f"{PLAYBOOKS[name]}.yml"
    # Not the script `ansible-playbook`: there may be another one on PATH, with another Python.
    return module_command("ansible", "playbook", *inventory, str(playbook), *arguments)


def playbook_environment(name: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What Ansible runs the playbook of command `name` with: the site's own ansible.cfg, else the one beside our own.

    An inventory that cannot be read is a failure, as it is for every other command of ours.
    """
    environment = {} if name in WITHOUT_HOSTS else {"ANSIBLE_INVENTORY_UNPARSED_FAILED": "true"}
    environment |= environ
    if any(config.is_file() for config in ansible_configs(environ)):
        return environment
    return {**environment, "ANSIBLE_CONFIG": str(playbook_folder(find_checkout()) / "ansible.cfg")}
