"""The lock files hold what pyproject.toml asks for on each Python line, and can be fetched by nobody but its author."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "fleet" / "gua_fleet" / "locks").glob("py*.txt"))
LINE = re.compile(r"([a-z0-9-]+)==([^ ]+) --hash=sha256:[0-9a-f]{64}")


def pins(lock: Path) -> dict[str, str]:
    matches = [LINE.fullmatch(line) for line in lock.read_text().splitlines()]
    assert all(matches), f"{lock.name} holds a line that is no pin with one hash"
    return {match[1]: match[2] for match in matches if match}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_satisfies_every_base_dependency(lock: Path) -> None:
    python = f"{lock.stem[2]}.{lock.stem[3:]}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = pins(lock)
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    for requirement in map(Requirement, project["dependencies"]):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            assert requirement.specifier.contains(locked[requirement.name]), f"run update_locks.py: {requirement}"
        else:
            assert requirement.name not in locked
    assert "pip" in locked


def test_there_is_a_lock_for_each_line_that_the_role_looks_for() -> None:
    role = yaml.safe_load((ROOT / "ansible" / "roles" / "gua_agent" / "vars" / "main.yml").read_text())
    assert {f"py{line.replace('.', '')}" for line in role["gua_agent__python_lines"]} == {lock.stem for lock in LOCKS}
