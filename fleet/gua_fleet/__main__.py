"""Entry of `gua-fleet`; says which extra to install where the controller's libraries are missing."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

_NEEDED = {"ansible": "ansible-core", "fabric": "fabric", "fastjsonschema": "fastjsonschema", "yaml": "pyyaml"}


def main(argv: Sequence[str] | None = None) -> int:
    """The `gua-fleet` command. Returns its exit status."""
    missing = [package for module, package in _NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        sys.stderr.write(
            f"gua-fleet: the controller needs {', '.join(missing)}: "
            'install the "fleet" extra (pip install "gua-fleet[fleet]", Python 3.10 or later)\n'
        )
        return 2
    from gua_fleet.cli.main import main as controller_main  # the extra is there only now

    return controller_main(argv)


if __name__ == "__main__":
    raise SystemExit(main())
