"""Whole screens as files: what reviewers see change when a table changes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


def load(name: str) -> Any:
    """A document of tests/data."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def check_golden(name: str, text: str) -> None:
    """Compare with tests/data/NAME; with GUA_UPDATE_GOLDEN=1 write it instead, to be read and committed."""
    path = DATA / name
    if os.environ.get("GUA_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"tests/data/{name} differs; GUA_UPDATE_GOLDEN=1 rewrites it"
