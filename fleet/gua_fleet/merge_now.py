"""What the newest ticks say: free cards, cards a scheduler keeps, cards whose activity cannot be measured. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gua.units import MS_PER_SECOND, parse_time_ms
from gua_fleet.merge_parts import model_name
from gua_fleet.merge_people import UserMap, fleet_user
from gua_fleet.model import Document, HostResult

# A card's newest tick tells what it does now only if it was seen within this many of its host's intervals.
FRESH_INTERVALS = 3


def idle_now(result: HostResult) -> list[dict[str, Any]]:
    """Cards of one host that are truly idle now, with the scheduler that gives them out, or None."""
    document: Document = result.report or {}
    scheduler = result.host.scheduler or document["host"]["scheduler"]
    return [
        _place(result, card)
        | {
            "mig": card["mig"] is not None,
            "memory_total_mb": card["memory_total_mb"],
            "since": card["now"]["since"],
            "scheduler": scheduler,
        }
        for card in _fresh(document)
        if card["now"]["state"] == "truly-idle"
    ]


def not_measurable_now(result: HostResult, people: UserMap) -> list[dict[str, Any]]:
    """Cards of one host that are held now and whose activity the driver does not tell, such as MIG slices."""
    rows = []
    for card in _fresh(result.report or {}):
        users = _holders(card["now"]["holders"], result.host.name, people)
        if card["now"]["reason"] == "util_unavailable" and users:
            rows.append(_place(result, card) | {"users": users})
    return rows


def stale_now(result: HostResult) -> list[dict[str, Any]]:
    """`[{"host", "cards"}]` where the newest ticks of so many cards are too old to tell what these do now, else []."""
    document: Document = result.report or {}
    stale = len(serving_now(document)) - len(_fresh(document))
    return [{"host": result.host.name, "cards": stale}] if stale else []


def serving_now(document: Document) -> list[Mapping[str, Any]]:
    """Cards in service, without those that another way of cutting hides: a card in slices, or the slices of one that is
    whole again. What was sampled last is how it is cut now.
    """
    cards = [card for card in document["cards"] if card.get("retired_at") is None]
    slices: dict[str, list[Mapping[str, Any]]] = {}
    for card in cards:
        if card["mig"] is not None:
            slices.setdefault(card["mig"]["parent_uuid"], []).append(card)
    hidden: set[str] = set()
    for whole in cards:
        parts = slices.get(whole["uuid"], ())
        is_whole = bool(parts) and _sampled_ms(whole) > max(map(_sampled_ms, parts))
        hidden.update(part["uuid"] for part in parts if is_whole)
        hidden.update([whole["uuid"]] if parts and not is_whole else [])
    return [card for card in cards if card["uuid"] not in hidden]


def _sampled_ms(card: Mapping[str, Any]) -> int:
    return parse_time_ms(card["now"]["at"]) if card["now"] else -1


def last_tick_at(document: Document) -> str | None:
    """When the newest tick of any card was taken, by the host's clock."""
    return max((card["now"]["at"] for card in document["cards"] if card["now"]), key=parse_time_ms, default=None)


def _place(result: HostResult, card: Mapping[str, Any]) -> dict[str, Any]:
    return {"host": result.host.name, "index": card["index"], "uuid": card["uuid"], "name": model_name(card)}


def _holders(holders: Iterable[Mapping[str, Any]], host_name: str, people: UserMap) -> list[str]:
    return sorted({fleet_user(one["user"], host_name, people) for one in holders if one["type"] != "graphics"})


def _fresh(document: Document) -> Sequence[Mapping[str, Any]]:
    """Cards of `serving_now` whose newest tick is fresh on the host's own clock.

    A tick from the future was stamped before the clock was set back, nobody knows when.
    """
    generated_ms = parse_time_ms(document["generated_at"])
    fresh_ms = FRESH_INTERVALS * MS_PER_SECOND * max(document["intervals_s"], default=0.0)
    return [
        card
        for card in serving_now(document)
        if card["now"] and abs(parse_time_ms(card["now"]["at"]) - generated_ms) <= fresh_ms
    ]
