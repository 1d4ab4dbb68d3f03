import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gua
from gua.privileges import become_owner

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")

# The interpreter itself may lie where nobody else can read it: then only the last step of becoming is looked at.
TAKE = """
import os, sys
from gua import privileges
name = privileges._take_identity(os.stat(sys.argv[1]))
print(os.geteuid(), os.getegid(), oct(os.umask(0)), 0 in os.getgroups(), sep=";")
"""
BECOME = """
import pathlib, sys
from gua.errors import GuaError
from gua.privileges import become_owner
try:
    become_owner(pathlib.Path(sys.argv[1]))
except GuaError as exc:
    print(exc)
"""


def run(code: str, path: Path, package: Path) -> str:
    """What `code` prints, run in a child, because becoming somebody else is for good."""
    command = [sys.executable, "-c", code, str(path)]
    environ = {**os.environ, "PYTHONPATH": str(package)}
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory of nobody's, with another group."""
    path = tmp_path / "gua"
    path.mkdir()
    os.chown(path, 65534, 4)
    return path


def test_root_becomes_the_owner_with_the_directorys_group(directory: Path) -> None:
    package = Path(gua.__file__).parents[1]
    assert run(TAKE, directory, package) == "65534;4;0o27;False"


def test_an_owner_who_cannot_read_this_program_is_told(tmp_path: Path, directory: Path) -> None:
    hidden = tmp_path / "hidden"
    shutil.copytree(Path(gua.__file__).parent, hidden / "gua")
    hidden.chmod(0o700)
    line = run(BECOME, directory / "gua.db", hidden)
    assert str(directory / "gua.db") in line
    assert "cannot read this program" in line
    assert "\n" not in line


def test_root_stays_root_on_its_own_database(tmp_path: Path) -> None:
    assert become_owner(tmp_path / "sub/gua.db") is None
    assert os.geteuid() == 0
