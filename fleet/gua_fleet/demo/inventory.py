"""The made-up fleet's inventory: an ordinary Ansible file, to be read and changed by hand. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

HEAD = """\
# A made-up fleet on this machine: three hosts that are run here, and one that nobody can reach.
# gua-fleet reads this file as it reads the inventory that you give to ansible-playbook.
"""

# No address is less likely to answer than the discard port of this very machine.
_UNREACHABLE = {"ansible_host": "127.0.0.1", "ansible_port": 9, "gua_cards": 8}


def inventory_text(directory: Path, python: str) -> str:
    """YAML of the inventory. python: the interpreter that has the `gua` package. Any path may hold blanks."""
    groups: dict[str, Any] = {
        "training": {
            "hosts": {
                "gpu01": _local(directory, "gpu01", python),
                "gpu02": _local(directory, "gpu02", python) | {"gua_scheduler": "slurm"},
            }
        },
        "workstations": {"hosts": {"gpu03": _local(directory, "gpu03", python)}},
        "new": {"hosts": {"gpu04": _UNREACHABLE}},
    }
    return HEAD + yaml.safe_dump({"all": {"children": groups}}, sort_keys=False, width=1000, allow_unicode=True)


def _local(directory: Path, name: str, python: str) -> dict[str, Any]:
    home = directory.resolve() / name
    return {
        "ansible_connection": "local",
        "gua_command": [
            "/usr/bin/env",
            f"GUA_DB={home / 'gua.db'}",
            f"GUA_SETTINGS={home / 'agent.toml'}",
            python,
            "-m",
            "gua",
        ],
    }
