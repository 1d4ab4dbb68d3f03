"""Programs of this interpreter that must run where the user stands, and take no code from there."""

from __future__ import annotations

import sys

# `-m` and `-c` look in the working directory first, which may belong to anybody; 3.10 has no `-P`.
_ELSEWHERE = (
    "import sys; sys.path[:] = filter(None, sys.path); "
    "import runpy; runpy.run_module(sys.argv.pop(1), None, '__main__', True)"
)


def module_command(module: str, *arguments: str) -> list[str]:
    """What `python -m MODULE` is, but for the working directory, in which no module is looked for."""
    return [sys.executable, "-c", _ELSEWHERE, module, *arguments]
