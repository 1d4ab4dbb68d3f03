"""Shape of `gua.cards/1`: every card of this host's history, and which of them a person means by part of its UUID."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Optional, TypedDict

from gua.errors import UsageError
from gua.model import Reason
from gua.report.document import MigInfo
from gua.text import shown
from gua.units import to_iso

if TYPE_CHECKING:
    from gua.store.devices import DeviceRow
    from gua.store.reader import NowRow

SCHEMA = "gua.cards/1"

# Why a card is unknown without having answered.
_ABSENT = frozenset({Reason.CARD_LOST, Reason.CARD_MISSING, Reason.DRIVER, Reason.UNRESPONSIVE})
# A tick may be late by a sampling deadline; one that is three intervals old is no word on the present.
_FRESH_INTERVALS = 3
_FRESH_FLOOR_MS = 15_000


class ListedCard(TypedDict):
    """state, reason, since: by the newest tick, begun at `state_at`; None for a retired card. fresh: that is now.

    last_seen_at: the newest tick that reached it; None when none ever did.
    """

    uuid: str
    index: Optional[int]
    name: Optional[str]
    mig: Optional[MigInfo]
    pci_bus_id: Optional[str]
    first_seen_at: str
    last_seen_at: Optional[str]
    state: Optional[str]
    reason: Optional[str]
    since: Optional[str]
    state_at: Optional[str]
    fresh: bool
    retired_at: Optional[str]


class Cards(TypedDict):
    schema: str
    generated_at: str
    cards: list[ListedCard]


def to_document(
    devices: Sequence[DeviceRow],
    now: Mapping[int, NowRow],
    last_seen_ms: Mapping[int, int],
    *,
    interval_ms: Optional[int],
    now_ms: int,
) -> Cards:
    """The document. now, last_seen_ms: by device id, as the store has them. interval_ms: of the newest run. Pure."""
    fresh_ms = max(_FRESH_FLOOR_MS, _FRESH_INTERVALS * (interval_ms or 0))
    listed = [_listed(row, now.get(row.id), last_seen_ms.get(row.id), now_ms - fresh_ms) for row in devices]
    return {"schema": SCHEMA, "generated_at": to_iso(now_ms), "cards": listed}


def _listed(row: DeviceRow, now: Optional[NowRow], seen_ms: Optional[int], fresh_since_ms: int) -> ListedCard:
    reason = None if now is None else now.verdict.reason
    return {
        "uuid": row.uuid,
        "index": row.index,
        "name": row.name,
        "mig": None if row.mig is None else {"parent_uuid": row.mig.parent_uuid, "profile": row.mig.profile},
        "pci_bus_id": row.pci_bus_id,
        "first_seen_at": to_iso(row.first_seen_ms),
        "last_seen_at": None if seen_ms is None else to_iso(seen_ms),
        "state": None if now is None else now.verdict.state.value,
        "reason": None if reason is None else reason.value,
        "since": None if now is None else to_iso(now.since_ms),
        "state_at": None if now is None else to_iso(now.at_ms),
        "fresh": now is not None and now.at_ms >= fresh_since_ms,
        "retired_at": None if row.retired_at_ms is None else to_iso(row.retired_at_ms),
    }


def answers(card: ListedCard) -> bool:
    """Whether the card was reached by a tick of now."""
    return card["fresh"] and card["reason"] not in {reason.value for reason in _ABSENT}


def find_card(cards: Sequence[ListedCard], wanted: str) -> ListedCard:
    """The one card not retired whose UUID is `wanted`, or begins with it (with or without `GPU-`).

    Raises UsageError, naming those it could be.
    """
    living = [card for card in cards if card["retired_at"] is None]
    exact = [card for card in living if card["uuid"] == wanted]
    found = exact or [card for card in living if wanted and _begins(card["uuid"], wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(shown(card["uuid"]) for card in found)
        raise UsageError(f"{shown(wanted)} could be {names}: write more of it")
    if any(_begins(card["uuid"], wanted) for card in cards):
        raise UsageError(f"{shown(wanted)} is retired already")
    raise UsageError(f"no card of this history begins with {shown(wanted)}; `gua card list` shows them")


def _begins(uuid: str, wanted: str) -> bool:
    plain, text = uuid.lower(), wanted.lower()
    return plain.startswith(text) or plain.partition("-")[2].startswith(text)
