"""JSON Schemas (2020-12) of the agent's documents. They allow unknown fields: a newer agent may say more."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, cast

NAMES = (
    "gua.report.1",
    "gua.doctor.1",
    "gua.status.1",
    "gua.observation.1",
    "gua.cards.1",
    "gua.error.1",
    "gua.holds.1",
    "gua.explain.1",
    "gua.export.1",
    "gua.export-chunk.1",
    "gua.import.1",
)

# The same as documents name themselves: what a program that reads this agent must know.
DOCUMENTS = tuple("{0}/{2}".format(*name.rpartition(".")) for name in NAMES)


def load_schema(name: str) -> dict[str, Any]:
    """The schema of one of NAMES."""
    text = resources.files(__name__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    return cast("dict[str, Any]", json.loads(text))
