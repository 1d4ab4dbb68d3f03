"""Write the lock files anew: `python tests/ansible/update_locks.py` in a venv that also holds uv.

For each Python line: uv resolves the dependencies (pip asked for another line would evaluate markers of its own
interpreter), pip fetches the wheels, and their hashes go into the lock. The agent's lock has the one pure-Python wheel
of each; the controller's the wheel of each kind of machine, because some of what it needs is compiled.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gua_fleet.wheelhouse import MACHINES, PURE, compiled

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "fleet" / "gua_fleet" / "locks"
LINES = ("3.9", "3.10", "3.11", "3.12", "3.13")
FLEET_LINES = LINES[1:]


def resolve(line: str, requirements: Path, *extras: str) -> list[str]:
    """`name==version` of everything that is needed on Linux under Python `line`, and of pip itself."""
    command = ["uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python-version", line, *extras]
    where = ["--python-platform", "x86_64-unknown-linux-gnu", str(ROOT / "pyproject.toml"), str(requirements)]
    printed = subprocess.run([*command, *where], check=True, capture_output=True, text=True).stdout
    return [word for word in printed.split() if "==" in word]


def locked(pin: str, line: str, kinds: Sequence[Sequence[str]], scratch: Path) -> str:
    """The lock file's line for one pin: with the hash of its wheel of each kind, which must exist."""
    digests = dict.fromkeys(_digest(pin, line, kind, scratch / line / pin / str(at)) for at, kind in enumerate(kinds))
    return " ".join([pin, *(f"--hash=sha256:{digest}" for digest in digests)]) + "\n"


def _digest(pin: str, line: str, kind: Sequence[str], folder: Path) -> str:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *kind, "--python-version", line]
    subprocess.run([*command, "--dest", str(folder), pin], check=True)
    [wheel] = folder.iterdir()
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def locks(requirements: Path, scratch: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every lock file."""
    for line in LINES:
        pins = resolve(line, requirements)
        yield f"py{line.replace('.', '')}", "".join(locked(pin, line, [PURE], scratch / "agent") for pin in pins)
    for line in FLEET_LINES:
        kinds = [compiled(machine, line) for machine in MACHINES]
        pins = resolve(line, requirements, "--extra", "fleet", "--extra", "postgres")
        yield f"fleet-py{line.replace('.', '')}", "".join(locked(pin, line, kinds, scratch / "fleet") for pin in pins)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        requirements = scratch / "pip.in"
        requirements.write_text("pip\n")
        for name, text in locks(requirements, scratch):
            (LOCKS / f"{name}.txt").write_text(text)
            sys.stdout.write(f"{name}: {text.count('==')} packages\n")


if __name__ == "__main__":
    main()
