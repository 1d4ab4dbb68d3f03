"""An observation for people: a line for the host, a line a card. Pure."""

from __future__ import annotations

from typing import Any, Optional

from gua.observation import Observation, ObservedCard
from gua.text import shown


def render_observation(document: Observation) -> str:
    """Lines of text, newline at the end; `-` stands for what is not known."""
    stored = "stored" if document["stored"] else f"not stored: {document['stored_reason']}"
    head = f"{document['host']['hostname']}: {document['status']}, {len(document['cards'])} cards, {stored}"
    if document["push"]["result"] == "pushed":
        head += ", pushed"
    lines = [head] + [_card_line(card) for card in document["cards"]]
    lines += [f"  ! {shown(error, 200)}" for error in document["errors"]]
    return "\n".join(lines) + "\n"


def _card_line(card: ObservedCard) -> str:
    now = card["now"]
    state = now["state"] + (f" ({now['reason']})" if now["reason"] else "")
    holders = sorted({shown(holder["user"]) for holder in now["holders"] if holder["type"] == "compute"})
    util, memory = _or_dash(now["util_pct"], " %"), _or_dash(now["memory_used_mb"], " MB")
    name, users = shown(card["name"] or "-"), ", ".join(holders) or "-"
    return f"  {_or_dash(card['index']):>2}  {name:<28} {state:<32} {util:>6} {memory:>10}  {users}"


def _or_dash(value: Optional[Any], unit: str = "") -> str:
    return "-" if value is None else f"{value}{unit}"
