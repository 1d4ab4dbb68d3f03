"""Commands of this machine, on which the lab hosts stand."""

from __future__ import annotations

import subprocess


class HostFailed(Exception):
    """A lab host did not do what was asked; the text names it and says what it printed."""


def do(*command: str) -> None:
    """Run a command of this machine that must work. Raises HostFailed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise HostFailed(f"{' '.join(command)} gave {done.returncode}: {done.stderr.strip()}")
