"""The first thing a stranger types: what `make` does and says where something is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")

# Stands for an interpreter and for the venv's: tells what it was asked, and fails where the test wants it to.
INTERPRETER = """\
#!/bin/sh
case "$*" in
  *version_info*"(3, 9)"*) exit "${TOO_OLD:-0}" ;;
  *ensurepip*) exit "${NO_VENV:-0}" ;;
  --version) echo "Python 3.99" ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/gua-fleet" && echo made >>"$3.log" ;;
  *"pip "*install*editable*) exit "${NO_INDEX:-0}" ;;
esac
"""


def make_demo(folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """`make demo` of this Makefile in a checkout at `folder`, with an interpreter that only pretends."""
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "pyproject.toml").touch()
    interpreter = folder / "python"
    interpreter.write_text(INTERPRETER)
    interpreter.chmod(0o755)
    command = ["make", "--no-print-directory", "-C", str(folder), "demo"]
    given = {"PYTHON": "./python", "PATH": os.environ["PATH"], **environ}
    return subprocess.run(command, env=given, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"PYTHON": "python3.77"}, "there is no python3.77 here: install it"),
        ({"TOO_OLD": "1"}, "./python is too old: Python 3.9 or later is needed"),
        ({"NO_VENV": "1"}, "./python cannot make a venv: install it first (Debian, Ubuntu: apt install python3-venv)"),
        ({"NO_INDEX": "1"}, "pip could not install into .venv, see above; it needs a package index"),
    ],
)
def test_what_is_missing_is_one_clear_line(environ: dict[str, str], words: str, tmp_path: Path) -> None:
    done = make_demo(tmp_path, **environ)
    assert done.returncode != 0
    ours = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert ours[-1].startswith(words)
    assert not any("Traceback" in line for line in ours)


def venvs_made(folder: Path) -> int:
    return (folder / ".venv.log").read_text().count("made")


def test_a_venv_is_made_once(tmp_path: Path) -> None:
    assert [make_demo(tmp_path).returncode for _ in range(2)] == [0, 0]
    assert venvs_made(tmp_path) == 1


def test_a_half_made_venv_is_made_anew(tmp_path: Path) -> None:
    make_demo(tmp_path)
    (tmp_path / ".venv/.made").unlink()
    assert make_demo(tmp_path).returncode == 0
    assert venvs_made(tmp_path) == 2


def test_a_venv_that_pip_did_not_finish_is_made_anew(tmp_path: Path) -> None:
    """pip takes a package whose unpacking was cut short for installed, though its commands are not there."""
    assert make_demo(tmp_path, NO_INDEX="1").returncode != 0
    assert make_demo(tmp_path).returncode == 0
    assert venvs_made(tmp_path) == 2


def test_a_venv_whose_interpreter_is_gone_is_made_anew(tmp_path: Path) -> None:
    make_demo(tmp_path)
    (tmp_path / ".venv/bin/python").unlink()
    assert make_demo(tmp_path).returncode == 0
    assert venvs_made(tmp_path) == 2


def test_the_venv_of_another_checkout_is_made_anew(tmp_path: Path) -> None:
    make_demo(tmp_path / "here it is")
    shutil.copytree(tmp_path / "here it is", tmp_path / "copy")
    assert make_demo(tmp_path / "copy").returncode == 0
    assert venvs_made(tmp_path / "copy") == 2
