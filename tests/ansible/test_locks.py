"""The lock files hold what pyproject.toml asks for on each Python line, and can be fetched by nobody but its author."""

from __future__ import annotations

import re
import sys
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from gua_fleet.wheelhouse import MACHINES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "fleet" / "gua_fleet" / "locks").glob("py*.txt"))
FLEET_LOCKS = sorted((ROOT / "fleet" / "gua_fleet" / "locks").glob("fleet-py*.txt"))
LINE = re.compile(r"([a-z0-9-]+)==([^ ]+) --hash=sha256:[0-9a-f]{64}")
# One hash for each kind of machine; one in all where the wheel is pure Python.
FLEET_LINE = re.compile(rf"{LINE.pattern}(?: --hash=sha256:[0-9a-f]{{64}}){{0,{len(MACHINES) - 1}}}")


def pins(lock: Path) -> dict[str, str]:
    line_of = LINE if lock in LOCKS else FLEET_LINE
    matches = [line_of.fullmatch(line) for line in lock.read_text().splitlines()]
    assert all(matches), f"{lock.name} holds a line that is no pin with one hash"
    return {match[1]: match[2] for match in matches if match}


@pytest.mark.parametrize("lock", [*LOCKS, *FLEET_LOCKS], ids=lambda lock: lock.stem)
def test_a_lock_satisfies_every_dependency(lock: Path) -> None:
    line = lock.stem.removeprefix("fleet-")
    python = f"{line[2]}.{line[3:]}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = pins(lock)
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    extras = [project["optional-dependencies"][name] for name in ("fleet", "postgres") if lock in FLEET_LOCKS]
    for requirement in map(Requirement, chain(project["dependencies"], *extras)):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            assert requirement.specifier.contains(locked[requirement.name]), f"run update_locks.py: {requirement}"
        else:
            assert requirement.name not in locked
    assert "pip" in locked


def test_there_is_a_lock_for_each_line_that_the_role_looks_for() -> None:
    for role, locks, prefix in (("gua_agent", LOCKS, "py"), ("gua_controller", FLEET_LOCKS, "fleet-py")):
        known = yaml.safe_load((ROOT / "ansible" / "roles" / role / "vars" / "main.yml").read_text())
        lines = known[f"{role}__python_lines"]
        assert {f"{prefix}{line.replace('.', '')}" for line in lines} == {lock.stem for lock in locks}


def test_the_controllers_role_knows_the_machines_that_there_are_wheels_for() -> None:
    role = yaml.safe_load((ROOT / "ansible" / "roles" / "gua_controller" / "vars" / "main.yml").read_text())
    assert tuple(role["gua_controller__machines"]) == MACHINES
