"""`python -m tests.screens`."""

from __future__ import annotations

import argparse
import sys

from tests.screens import BLOCKS, FILES, ROOT, with_blocks


def main() -> None:
    """Write the screens in README and docs anew, from what the program prints."""
    argparse.ArgumentParser("python -m tests.screens", description=main.__doc__).parse_args()
    for name, blocks in BLOCKS.items():
        path = ROOT / name
        path.write_text(with_blocks(path.read_text(encoding="utf-8"), blocks), encoding="utf-8")
        sys.stdout.write(f"{name}\n")
    for name, make_file in FILES.items():
        (ROOT / name).write_text(make_file(), encoding="utf-8")
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
