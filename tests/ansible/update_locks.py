"""Write the agent's lock files anew: `python tests/ansible/update_locks.py` in a venv that also holds uv.

For each Python line: uv resolves the base dependencies (pip asked for another line would evaluate markers of its own
interpreter), pip fetches the one pure-Python wheel of each, and its hash goes into the lock.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "fleet" / "gua_fleet" / "locks"
LINES = ("3.9", "3.10", "3.11", "3.12", "3.13")
PURE = ("--only-binary=:all:", "--platform", "any", "--abi", "none", "--implementation", "py")


def resolve(line: str, requirements: Path) -> list[str]:
    """`name==version` of everything the agent needs on Linux under Python `line`, and of pip itself."""
    command = ["uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python-version", line]
    where = ["--python-platform", "x86_64-unknown-linux-gnu", str(ROOT / "pyproject.toml"), str(requirements)]
    printed = subprocess.run([*command, *where], check=True, capture_output=True, text=True).stdout
    return [word for word in printed.split() if "==" in word]


def locked(pin: str, line: str, scratch: Path) -> str:
    """The lock file's line for one pin: with the hash of its pure-Python wheel, which must exist."""
    folder = scratch / line / pin
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *PURE, "--python-version", line]
    subprocess.run([*command, "--dest", str(folder), pin], check=True)
    [wheel] = folder.iterdir()
    return f"{pin} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        requirements = scratch / "pip.in"
        requirements.write_text("pip\n")
        for line in LINES:
            text = "".join(locked(pin, line, scratch) for pin in resolve(line, requirements))
            (LOCKS / f"py{line.replace('.', '')}.txt").write_text(text)
            sys.stdout.write(f"Python {line}: {text.count('==')} packages\n")


if __name__ == "__main__":
    main()
