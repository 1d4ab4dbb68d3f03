"""The cards of a host's history for people, a line a card. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from gua.cards import Cards, ListedCard
from gua.report.render_rows import table_lines
from gua.text import shown

_HEADERS = ("index", "card", "UUID", "PCI", "first seen", "last seen", "state")
# `GPU-` and the eight digits before the next dash: what people compare with nvidia-smi.
_SHORT = 12


# What a narrow terminal can do without, in this order.
_SPARED = ("first seen", "PCI", "last seen")


def render_cards(document: Cards, width: Optional[int] = None) -> str:
    """Lines of text, newline at the end; `-` stands for what is not known. Times are UTC, to the minute.

    width: columns there are; columns of the table that do not fit are left out, the least telling first.
    """
    if not document["cards"]:
        return "no card was ever seen here\n"
    rows = [_row(card) for card in document["cards"]]
    for spared in range(len(_SPARED) + 1):
        lines = _table(rows, without=_SPARED[:spared])
        if width is None or max(map(len, lines)) <= width:
            break
    return "\n".join(lines) + "\n"


def _table(rows: list[tuple[str, ...]], without: Sequence[str]) -> list[str]:
    kept = [place for place, header in enumerate(_HEADERS) if header not in without]
    shorter = [tuple(row[place] for place in kept) for row in rows]
    return table_lines([_HEADERS[place] for place in kept], shorter, "r" + "l" * (len(kept) - 1))


def _row(card: ListedCard) -> tuple[str, ...]:
    name = shown(card["name"] or "-")
    # NVML's name of an instance may hold its profile already
    if card["mig"] is not None and card["mig"]["profile"] not in name:
        name += f" MIG {shown(card['mig']['profile'])}"
    return (
        "-" if card["index"] is None else str(card["index"]),
        name,
        shown(card["uuid"])[:_SHORT],
        shown(card["pci_bus_id"] or "-").lower(),
        _minute(card["first_seen_at"]),
        "never" if card["last_seen_at"] is None else _minute(card["last_seen_at"]),
        _state(card),
    )


def _state(card: ListedCard) -> str:
    if card["retired_at"] is not None:
        return f"retired {_minute(card['retired_at'])}"
    if card["state"] is None or card["since"] is None:
        return "-"
    words = card["state"]
    if card["reason"] is not None:
        words += f": {card['reason']} since {_minute(card['since'])}"
    return words if card["fresh"] else f"was {words} (not seen now)"


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")
