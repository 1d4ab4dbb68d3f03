"""Controllers that run other lines of ansible-core, each on the Python it is meant for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.lab.base import LAB_ROOT, locked
from tests.lab.needs import LabUnavailable, last_line

# ansible-core -> Python
CORES = {"2.17": "3.10", "2.19": "3.11", "2.21": "3.12"}
INSTALL_TIMEOUT_S = 900


def find_python(line: str) -> str | None:
    """An interpreter of that line on this machine."""
    candidates = [shutil.which(f"python{line}"), *Path.home().glob(f".pyenv/versions/{line}.*/bin/python3")]
    check = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{line}')"
    return next((str(found) for found in candidates if found and _succeeds(str(found), "-c", check)), None)


def controller(core: str) -> Path:
    """The folder of a line's ansible-playbook, installed where it is not yet. Raises LabUnavailable."""
    python = find_python(CORES[core])
    if python is None:
        raise LabUnavailable(f"ansible-core {core} is tried on Python {CORES[core]}, which is not here")
    venv = LAB_ROOT / "controllers" / core
    venv.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with locked(venv.with_name(f"{core}.lock")):
        if not (venv / ".complete").exists():
            shutil.rmtree(venv, ignore_errors=True)
            _run(python, "-m", "venv", str(venv))
            pip = (str(venv / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check")
            _run(*pip, "install", f"ansible-core=={core}.*")
            (venv / ".complete").touch()
    return venv / "bin"


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    if done.returncode != 0:
        raise LabUnavailable(f"{' '.join(command)} failed: {last_line(done.stderr)}")
