"""What one host contributes to the fleet's sums: its report, or its silence. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gua_fleet.merge_people import NO_MAP, UserMap, fleet_user
from gua_fleet.model import Document, Host
from gua_fleet.sums import (
    NO_STATES,
    TICK_STATUSES,
    CardSums,
    FleetSums,
    States,
    UserSums,
    micro_states,
    to_micro,
)

# The kind of cards of which only the number is known.
MODEL_NOT_KNOWN = "(model not known)"


def sums_of_document(host: Host, document: Document, *, zone_fits: bool, people: UserMap = NO_MAP) -> FleetSums:
    """What one answering host contributes. zone_fits: its hours of the week are in the fleet's time zone."""
    coverage = document["coverage"]
    models = _models(document)
    total = replace(
        sum(models.values(), CardSums()),
        cards=physical_cards(document),
        expected=to_micro(coverage["expected_card_s"]),
        states=micro_states(document["card_s"]),
    )
    return FleetSums(
        total=total,
        observed=to_micro(coverage["observed_card_s"]),
        unobserved=to_micro(coverage["unobserved_card_s"]),
        samples=document["samples"],
        unknown_by_reason={key: to_micro(value) for key, value in coverage["unknown_by_reason"].items()},
        ticks={status: coverage["ticks"][status] for status in TICK_STATUSES},
        users=_users(host, document, people),
        models=models,
        groups=dict.fromkeys(host.groups, total),
        group_hosts=dict.fromkeys(host.groups, 1),
        hours=_hours(document) if zone_fits else {},
    )


def sums_of_silence(host: Host, *, cards: int, window_s: float, models: Mapping[str, int] | None = None) -> FleetSums:
    """What a host that did not answer contributes: its known cards, expected all the window and not seen.

    cards: 0 where nobody said how many it has; then it only keeps its place in its groups. models: how many of them
    are of which model, where that is known from an earlier answer.
    """
    known = dict(models or {})
    if sum(known.values()) != cards:
        known = {MODEL_NOT_KNOWN: cards} if cards else {}
    total = _unseen(cards, window_s)
    return FleetSums(
        total=total,
        unobserved=total.expected,
        models={(name, False): _unseen(number, window_s) for name, number in known.items()},
        groups=dict.fromkeys(host.groups, total),
        group_hosts=dict.fromkeys(host.groups, 1),
    )


def sums_unused(host: Host, document: Document) -> FleetSums:
    """What a host contributes whose states mean something else than the others': its expected time, as not seen."""
    models, expected = _models(document), to_micro(document["coverage"]["expected_card_s"])
    total = CardSums(cards=physical_cards(document), expected=expected, sliced=len(_sliced(document)))
    return FleetSums(
        total=total,
        unobserved=expected,
        models={key: CardSums(part.cards, part.expected, sliced=part.sliced) for key, part in models.items()},
        groups=dict.fromkeys(host.groups, total),
        group_hosts=dict.fromkeys(host.groups, 1),
    )


def physical_cards(document: Document) -> int:
    """Cards in the machine that are not retired: MIG instances of one parent count as that one card."""
    sliced = _sliced(document)
    cards = [card for card in document["cards"] if card.get("retired_at") is None and card["uuid"] not in sliced]
    return sum(card["mig"] is None for card in cards) + len(sliced)


def model_name(card: Mapping[str, Any]) -> str:
    """A card's model; a MIG instance is named by its profile too, because a slice of 1g is not one of 3g."""
    return f"{card['name']} {card['mig']['profile']}" if card["mig"] else str(card["name"])


def _unseen(cards: int, window_s: float) -> CardSums:
    return CardSums(cards=cards, expected=to_micro(cards * window_s))


def _users(host: Host, document: Document, people: UserMap) -> dict[str, UserSums]:
    parts: dict[str, UserSums] = {}
    for user in document["users"]:
        name = fleet_user(user["user"], host.name, people)
        part = _user(user, host.name)
        parts[name] = parts[name] + part if name in parts else part
    return parts


def _user(user: Mapping[str, Any], host_name: str) -> UserSums:
    return UserSums(
        card=to_micro(user["card_s"]),
        share=to_micro(user["share_s"]),
        shared_card=to_micro(user["shared_card_s"]),
        idle_held=to_micro(user["idle_held_card_s"]),
        idle_held_long=to_micro(user["idle_held_long_card_s"]),
        samples=user["samples"],
        energy=None if user["energy_j"] is None else to_micro(user["energy_j"]),
        energy_known=to_micro(user["energy_known_s"]),
        states=micro_states(user["states"]),
        uids=frozenset() if user["uid"] is None else frozenset({user["uid"]}),
        sources=frozenset({user["user_source"]}),
        hosts=frozenset({host_name}),
    )


def _sliced(document: Document) -> dict[str, str]:
    """Cards that are cut into MIG slices: {their UUID: their model}."""
    return {
        card["mig"]["parent_uuid"]: card["name"]
        for card in document["cards"]
        if card["mig"] and card.get("retired_at") is None
    }


def _models(document: Document) -> dict[tuple[str, bool], CardSums]:
    """Sums by (model, is a MIG slice). A card cut into slices counts as one of its model, without their time."""
    models: dict[tuple[str, bool], CardSums] = {}
    sliced = _sliced(document)
    for card in document["cards"]:
        key = (model_name(card), card["mig"] is not None)
        part = _card(card, counts=card["retired_at"] is None and card["uuid"] not in sliced)
        models[key] = models[key] + part if key in models else part
    for name in sliced.values():
        models[name, False] = models.get((name, False), CardSums()) + CardSums(cards=1, sliced=1)
    return models


def _card(card: Mapping[str, Any], *, counts: bool) -> CardSums:
    known, unmeasured = card["energy_j"] is not None, card.get("held_unmeasured_s")
    return CardSums(
        cards=int(counts),
        expected=to_micro(card["expected_card_s"]),
        states=micro_states(card["card_s"]),
        energy=micro_states(card["energy_j"]) if known else NO_STATES,
        energy_known=to_micro(card["energy_known_s"]) if known else 0,
        unmeasured=to_micro(unmeasured) if isinstance(unmeasured, (int, float)) else 0,  # older agents do not say
    )


def _hours(document: Document) -> dict[tuple[int, int], States]:
    return {(hour["weekday"], hour["hour"]): micro_states(hour["card_s"]) for hour in document["hours_of_week"]}
