"""The unmodified gpu-usage-audit, which keeps our board honest: it was written against the contract by others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

VERSION = "1.8.0"
_LINE = "3.12"
_CACHE = Path(__file__).resolve().parents[2] / ".cache" / f"predecessor-{VERSION}"
_RUN = "import sys; from gpu_usage_audit.__main__ import gua_main; sys.exit(gua_main())"


class PredecessorUnavailable(Exception):
    """It cannot be run here; the text says why."""


@dataclass(frozen=True)
class Predecessor:
    """Its `gua` command, in a home of its own."""

    python: str
    packages: Path

    def run(self, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "HOME": str(home), "PYTHONPATH": str(self.packages), "NO_PROXY": "*"}
        return subprocess.run(
            [self.python, "-c", _RUN, *words], env=environ, cwd=home, capture_output=True, text=True, timeout=120
        )


def find_predecessor() -> Predecessor:
    """Install it where it is not yet. Raises PredecessorUnavailable without Python 3.12 or a package index."""
    python = _find_python()
    if python is None:
        raise PredecessorUnavailable(f"it needs Python {_LINE}, which is not here")
    if not _CACHE.exists():
        _install(_CACHE)
    return Predecessor(python, _CACHE)


def _find_python() -> Optional[str]:
    candidates = [shutil.which(f"python{_LINE}")]
    candidates += [str(path) for path in Path.home().glob(f".pyenv/versions/{_LINE}.*/bin/python3")]
    check = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{_LINE}')"
    return next((found for found in candidates if found and _succeeds([found, "-c", check])), None)


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


def _install(folder: Path) -> None:
    """Whole or not at all, whoever else is at it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.with_name(f"{folder.name}.{os.getpid()}")
    options = ["--quiet", "--disable-pip-version-check", "--retries", "0", "--timeout", "10"]
    options += ["--target", str(beside), "--python-version", _LINE, "--only-binary", ":all:"]
    options += ["--ignore-requires-python"]  # of the Python that runs pip
    command = [sys.executable, "-m", "pip", "install", *options, f"gpu-usage-audit=={VERSION}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        if done.returncode != 0:
            raise PredecessorUnavailable(f"it cannot be installed: {(done.stderr.strip() or '-').splitlines()[-1]}")
        if not folder.exists():
            beside.rename(folder)
    except subprocess.TimeoutExpired as exc:
        raise PredecessorUnavailable("the package index does not answer in time") from exc
    finally:
        shutil.rmtree(beside, ignore_errors=True)
