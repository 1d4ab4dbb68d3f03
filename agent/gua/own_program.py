"""How a program of ours is started from another: found where this one was found, and nowhere else."""

from __future__ import annotations

import os
import sys

# `-m` looks in the working directory first, which may belong to anybody.
FOLDER = "/"


def own_environment(**more: str) -> dict[str, str]:
    """This process's environment, with its search path, whatever the child's working directory is."""
    path = os.pathsep.join(os.path.abspath(folder) for folder in sys.path if folder)
    return {**os.environ, "PYTHONPATH": path, **more}
