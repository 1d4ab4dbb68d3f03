"""The doctor's document for people: one line a check, its cure below it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gua.text import shown

# Room for many cards in one line; what the driver says is somebody else's text.
_LINE = 1000


def render_doctor(document: Mapping[str, Any]) -> str:
    """Lines of text, newline at the end."""
    lines = []
    for check in document["checks"]:
        lines.append(f"{check['status']:<5} {check['id']:<20} {shown(check['summary'], _LINE)}")
        if check["cure"] is not None:
            lines.append(f"{'':<26} -> {shown(check['cure'], _LINE)}")
    lines.append("ready" if document["ready"] else "not ready")
    return "\n".join(lines) + "\n"
