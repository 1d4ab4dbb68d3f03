"""Print pip constraints that pin every runtime dependency of pyproject.toml to its lower bound.

The bounds are promises; CI runs the tests with exactly these versions. Development tools are not pinned.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
RUNTIME_EXTRAS = ("fleet", "parquet", "postgres")


def lowest(requirement: str) -> str:
    """`name[extra]>=1.2; marker` as `name==1.2; marker`: a constraint names no extras."""
    pinned, count = re.subn(r"(\[[^]]*\])?>=", "==", requirement, count=1)
    if count != 1:
        raise SystemExit(f"no lower bound: {requirement}")
    # a bound of one line (ansible-core>=2.17) means its newest patch release
    return re.sub(r"(ansible-core==\d+\.\d+)", r"\1.*", pinned)


def main() -> None:
    requirements = list(PROJECT["dependencies"])
    for extra in RUNTIME_EXTRAS:
        requirements += PROJECT["optional-dependencies"][extra]
    sys.stdout.write("\n".join(lowest(requirement) for requirement in requirements) + "\n")


if __name__ == "__main__":
    main()
