"""Sums that add: what one host contributes to the fleet, and the sum of any number of such parts. Pure.

Amounts are whole microseconds (or microjoules) here, because adding floats depends on the order and these sums must
not: the sum of any split of the hosts is the sum of all, to the last digit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from gua_fleet.model import Document, Host

STATE_NAMES = ("active", "idle-held", "truly-idle", "unknown")
TICK_STATUSES = ("ok", "partial", "error", "unresponsive")

_PER_UNIT = 1_000_000


def to_micro(amount: float) -> int:
    """Whole micro-units of a document's amount. 0 stays 0; the sign is kept."""
    return round(amount * _PER_UNIT)


def from_micro(amount: int) -> float:
    """A document's amount again."""
    return amount / _PER_UNIT


def micro_states(amounts: Mapping[str, Any]) -> Counter[str]:
    """A state map in micro-units: its four keys, whatever else a newer agent may say there."""
    return Counter({name: to_micro(amounts[name]) for name in STATE_NAMES})


def states_of(amounts: Mapping[str, int]) -> dict[str, float]:
    """A document's state map, always with its four keys."""
    return {name: from_micro(amounts.get(name, 0)) for name in STATE_NAMES}


def add_maps(left: Mapping[str, int], right: Mapping[str, int]) -> Counter[str]:
    """Sum by key. Unlike `Counter.__add__` it keeps keys whose sum is 0: a reason seen for no time is still said."""
    total = Counter(left)
    total.update(right)
    return total


@dataclass(frozen=True)
class UserSums:
    """One person (or one host's nameless account): amounts and where they come from.

    energy: None where any part of it is unknown, because a sum that leaves something out is no sum.
    """

    card: int = 0
    share: int = 0
    shared_card: int = 0
    idle_held: int = 0
    idle_held_long: int = 0
    samples: int = 0
    energy: int | None = 0
    states: Mapping[str, int] = field(default_factory=Counter)
    uids: frozenset[int] = frozenset()
    sources: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()

    def __add__(self, other: UserSums) -> UserSums:
        return UserSums(
            card=self.card + other.card,
            share=self.share + other.share,
            shared_card=self.shared_card + other.shared_card,
            idle_held=self.idle_held + other.idle_held,
            idle_held_long=self.idle_held_long + other.idle_held_long,
            samples=self.samples + other.samples,
            energy=None if self.energy is None or other.energy is None else self.energy + other.energy,
            states=add_maps(self.states, other.states),
            uids=self.uids | other.uids,
            sources=self.sources | other.sources,
            hosts=self.hosts | other.hosts,
        )


@dataclass(frozen=True)
class CardSums:
    """Cards of one kind (a model, a group): how many, what they did, and how much of them was expected."""

    cards: int = 0
    expected: int = 0
    states: Mapping[str, int] = field(default_factory=Counter)

    def __add__(self, other: CardSums) -> CardSums:
        return CardSums(self.cards + other.cards, self.expected + other.expected, add_maps(self.states, other.states))


@dataclass(frozen=True)
class FleetSums:
    """Everything that adds. `FleetSums()` is the sum of no host; `+` is associative and commutative, exactly."""

    total: CardSums = CardSums()
    observed: int = 0
    unobserved: int = 0
    samples: int = 0
    unknown_by_reason: Mapping[str, int] = field(default_factory=Counter)
    ticks: Mapping[str, int] = field(default_factory=Counter)
    users: Mapping[str, UserSums] = field(default_factory=dict)
    models: Mapping[tuple[str, bool], CardSums] = field(default_factory=dict)
    groups: Mapping[str, CardSums] = field(default_factory=dict)
    group_hosts: Mapping[str, int] = field(default_factory=Counter)
    hours: Mapping[tuple[int, int], Mapping[str, int]] = field(default_factory=dict)

    def __add__(self, other: FleetSums) -> FleetSums:
        return FleetSums(
            total=self.total + other.total,
            observed=self.observed + other.observed,
            unobserved=self.unobserved + other.unobserved,
            samples=self.samples + other.samples,
            unknown_by_reason=add_maps(self.unknown_by_reason, other.unknown_by_reason),
            ticks=add_maps(self.ticks, other.ticks),
            users=_add_keyed(self.users, other.users),
            models=_add_keyed(self.models, other.models),
            groups=_add_keyed(self.groups, other.groups),
            group_hosts=add_maps(self.group_hosts, other.group_hosts),
            hours=_add_hours(self.hours, other.hours),
        )


def _add_keyed(left: Mapping[Any, Any], right: Mapping[Any, Any]) -> dict[Any, Any]:
    total = dict(left)
    for key, value in right.items():
        total[key] = total[key] + value if key in total else value
    return total


def _add_hours(
    left: Mapping[tuple[int, int], Mapping[str, int]], right: Mapping[tuple[int, int], Mapping[str, int]]
) -> dict[tuple[int, int], Mapping[str, int]]:
    total = dict(left)
    for key, value in right.items():
        total[key] = add_maps(total.get(key, Counter()), value)
    return total


def add_all(parts: Iterable[FleetSums]) -> FleetSums:
    """The sum of any number of parts, none included."""
    return reduce(lambda left, right: left + right, parts, FleetSums())


def qualified_user(user: str, host_name: str) -> str:
    """The fleet's name for one host's user.

    A login name is one person everywhere; a bare number, a container or nobody-knows means something only on its
    host, so it carries it: `uid:1001@gpu03`.
    """
    local = user.startswith(("uid:", "container:")) or user in ("unknown", "unattributed")
    return f"{user}@{host_name}" if local else user


def physical_cards(document: Document) -> int:
    """Cards in the machine that are not retired: MIG instances of one parent count as that one card."""
    cards = [card for card in document["cards"] if card["retired_at"] is None]
    parents = {card["mig"]["parent_uuid"] for card in cards if card["mig"]}
    return sum(card["mig"] is None for card in cards) + len(parents)


def sums_of_document(host: Host, document: Document, *, zone_fits: bool) -> FleetSums:
    """What one answering host contributes. zone_fits: its hours of the week are in the fleet's time zone."""
    coverage = document["coverage"]
    total = CardSums(
        cards=physical_cards(document),
        expected=to_micro(coverage["expected_card_s"]),
        states=micro_states(document["card_s"]),
    )
    return FleetSums(
        total=total,
        observed=to_micro(coverage["observed_card_s"]),
        unobserved=to_micro(coverage["unobserved_card_s"]),
        samples=document["samples"],
        unknown_by_reason=Counter({key: to_micro(value) for key, value in coverage["unknown_by_reason"].items()}),
        ticks=Counter({status: coverage["ticks"][status] for status in TICK_STATUSES}),
        users=_users(host, document),
        models=_models(document),
        groups=dict.fromkeys(host.groups, total),
        group_hosts=Counter(host.groups),
        hours=_hours(document) if zone_fits else {},
    )


def sums_of_silence(host: Host, *, cards: int, window_s: float) -> FleetSums:
    """What a host that did not answer contributes: its known cards, expected all the window and not seen.

    cards: 0 where nobody said how many it has; then it only keeps its place in its groups.
    """
    unseen = to_micro(cards * window_s)
    total = CardSums(cards=cards, expected=unseen)
    return FleetSums(
        total=total, unobserved=unseen, groups=dict.fromkeys(host.groups, total), group_hosts=Counter(host.groups)
    )


def _users(host: Host, document: Document) -> dict[str, UserSums]:
    parts: dict[str, UserSums] = {}
    for user in document["users"]:
        name = qualified_user(user["user"], host.name)
        parts[name] = parts.get(name, UserSums()) + _user(user, host.name)
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
        states=micro_states(user["states"]),
        uids=frozenset() if user["uid"] is None else frozenset({user["uid"]}),
        sources=frozenset({user["user_source"]}),
        hosts=frozenset({host_name}),
    )


def _models(document: Document) -> dict[tuple[str, bool], CardSums]:
    models: dict[tuple[str, bool], CardSums] = {}
    for card in document["cards"]:
        key = (model_name(card), card["mig"] is not None)
        states = micro_states(card["card_s"])
        part = CardSums(int(card["retired_at"] is None), to_micro(card["expected_card_s"]), states)
        models[key] = models.get(key, CardSums()) + part
    return models


def model_name(card: Mapping[str, Any]) -> str:
    """A card's model; a MIG instance is named by its profile too, because a slice of 1g is not one of 3g."""
    return f"{card['name']} {card['mig']['profile']}" if card["mig"] else str(card["name"])


def _hours(document: Document) -> dict[tuple[int, int], Mapping[str, int]]:
    return {(hour["weekday"], hour["hour"]): micro_states(hour["card_s"]) for hour in document["hours_of_week"]}
