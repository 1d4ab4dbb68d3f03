"""The house holds: one outside library lives in one room, and imports go one way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted([*(ROOT / "agent" / "gua").rglob("*.py"), *(ROOT / "fleet" / "gua_fleet").rglob("*.py")])

# library -> the paths (from the package's parent folder) that may import it
HOMES = {
    "argcomplete": ("gua/cli/completion.py",),
    "pynvml": ("gua/nvml/",),
    "peewee": ("gua/store/", "gua_fleet/store/"),
    "playhouse": ("gua/store/", "gua_fleet/store/"),
    "fabric": ("gua_fleet/ssh/",),
    "invoke": ("gua_fleet/ssh/",),
    "paramiko": ("gua_fleet/ssh/",),
    "tabulate": ("gua/report/render", "gua/render", "gua_fleet/render"),
    "rich": ("gua/top/live.py", "gua_fleet/"),
    "requests": ("gua/cloud/",),
    "ansible": ("gua_fleet/inventory/ansible_reader",),
    "yaml": ("gua_fleet/config_yaml", "gua_fleet/demo/"),
}
# Pure rooms: they are handed values and hand back values, so they may not open, connect or ask the time.
PURE = ("gua/model.py", "gua/classify.py", "gua/coverage.py", "gua/shares.py", "gua/reconcile.py", "gua_fleet/merge.py")
IMPURE_IMPORTS = {"os", "socket", "subprocess", "time", "sqlite3", "peewee", "pynvml", "fabric", "threading"}


def relative(path: Path) -> str:
    return "/".join(path.relative_to(ROOT).parts[1:])


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_an_outside_library_is_imported_in_its_own_room_only(path: Path) -> None:
    strangers = [
        library
        for library in (name.split(".")[0] for name in imports(path))
        if library in HOMES and not relative(path).startswith(HOMES[library])
    ]
    assert strangers == []


def test_the_agent_never_imports_the_controller() -> None:
    assert [
        relative(path)
        for path in MODULES
        if relative(path).startswith("gua/") and any(name.split(".")[0] == "gua_fleet" for name in imports(path))
    ] == []


@pytest.mark.parametrize("name", PURE)
def test_the_middle_is_pure(name: str) -> None:
    path = next(module for module in MODULES if relative(module) == name)
    assert {imported.split(".")[0] for imported in imports(path)} & IMPURE_IMPORTS == set()


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))], ids=lambda path: path.name
)
def test_the_files_that_the_documentation_names_are_there(path: Path) -> None:
    named = re.findall(r"`((?:agent|fleet|ansible|tests|docs|\.ci)/[^` ]*)`", path.read_text(encoding="utf-8"))
    assert [name for name in named if not list(ROOT.glob(name.rstrip("/")))] == []


def test_nothing_makes_the_ansible_folder_a_package_that_shadows_ansible() -> None:
    assert list((ROOT / "ansible").rglob("__init__.py")) == []
