"""The fleet report for programs. Pure."""

from __future__ import annotations

import json

from gua_fleet.model import Document


def render_json(document: Document) -> str:
    """ASCII JSON, indented for people too, a newline at its end."""
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
