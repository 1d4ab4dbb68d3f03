"""Sums that add: amounts of users, cards and the whole fleet. Pure.

Amounts are whole microseconds (or microjoules) here, because adding floats depends on the order and these sums must
not: the sum of any split of the hosts is the sum of all, to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

STATE_NAMES = ("active", "idle-held", "truly-idle", "unknown")
TICK_STATUSES = ("ok", "partial", "error", "unresponsive")

_PER_UNIT = 1_000_000

States = tuple[int, int, int, int]
"""Micro-units by state, in the order of STATE_NAMES."""

NO_STATES: States = (0, 0, 0, 0)

K = TypeVar("K")
Summable = TypeVar("Summable", "UserSums", "CardSums")


def to_micro(amount: float) -> int:
    """Whole micro-units of a document's amount. 0 stays 0; the sign is kept."""
    return round(amount * _PER_UNIT)


def from_micro(amount: int) -> float:
    """A document's amount again."""
    return amount / _PER_UNIT


def micro_states(amounts: Mapping[str, Any]) -> States:
    """A state map in micro-units: its four keys, whatever else a newer agent may say there."""
    return (
        round(amounts["active"] * _PER_UNIT),
        round(amounts["idle-held"] * _PER_UNIT),
        round(amounts["truly-idle"] * _PER_UNIT),
        round(amounts["unknown"] * _PER_UNIT),
    )


def states_of(amounts: States) -> dict[str, float]:
    """A document's state map, always with its four keys."""
    return {name: from_micro(amount) for name, amount in zip(STATE_NAMES, amounts, strict=True)}


def add_states(left: States, right: States) -> States:
    return (left[0] + right[0], left[1] + right[1], left[2] + right[2], left[3] + right[3])


def add_counts(left: Mapping[K, int], right: Mapping[K, int]) -> dict[K, int]:
    """Sum by key. Keys whose sum is 0 stay: a reason seen for no time is still said."""
    total = dict(left)
    for key, amount in right.items():
        total[key] = total.get(key, 0) + amount
    return total


@dataclass(frozen=True)
class UserSums:
    """One person (or one host's nameless account): amounts and where they come from.

    energy: of the part that is known, None where none of it is. energy_known: how much of `share` it stands for.
    """

    card: int = 0
    share: int = 0
    shared_card: int = 0
    idle_held: int = 0
    idle_held_long: int = 0
    samples: int = 0
    energy: int | None = None
    energy_known: int = 0
    states: States = NO_STATES
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
            energy=_add_known(self.energy, other.energy),
            energy_known=self.energy_known + other.energy_known,
            states=add_states(self.states, other.states),
            uids=self.uids | other.uids,
            sources=self.sources | other.sources,
            hosts=self.hosts | other.hosts,
        )


@dataclass(frozen=True)
class CardSums:
    """Cards of one kind (a model, a group): how many, what they did, and how much of them was expected.

    sliced: how many of `cards` are cut into MIG slices. energy: by state, of the part that is known; energy_known:
    how much observed card time it stands for. unmeasured: part of unknown, in which somebody held the card.
    """

    cards: int = 0
    expected: int = 0
    states: States = NO_STATES
    energy: States = NO_STATES
    energy_known: int = 0
    sliced: int = 0
    unmeasured: int = 0

    def __add__(self, other: CardSums) -> CardSums:
        return CardSums(
            self.cards + other.cards,
            self.expected + other.expected,
            add_states(self.states, other.states),
            add_states(self.energy, other.energy),
            self.energy_known + other.energy_known,
            self.sliced + other.sliced,
            self.unmeasured + other.unmeasured,
        )


@dataclass(frozen=True)
class FleetSums:
    """Everything that adds. `FleetSums()` is the sum of no host; `+` is associative and commutative, exactly."""

    total: CardSums = CardSums()
    observed: int = 0
    unobserved: int = 0
    samples: int = 0
    unknown_by_reason: Mapping[str, int] = field(default_factory=dict)
    ticks: Mapping[str, int] = field(default_factory=dict)
    users: Mapping[str, UserSums] = field(default_factory=dict)
    models: Mapping[tuple[str, bool], CardSums] = field(default_factory=dict)
    groups: Mapping[str, CardSums] = field(default_factory=dict)
    group_hosts: Mapping[str, int] = field(default_factory=dict)
    hours: Mapping[tuple[int, int], States] = field(default_factory=dict)

    def __add__(self, other: FleetSums) -> FleetSums:
        return FleetSums(
            total=self.total + other.total,
            observed=self.observed + other.observed,
            unobserved=self.unobserved + other.unobserved,
            samples=self.samples + other.samples,
            unknown_by_reason=add_counts(self.unknown_by_reason, other.unknown_by_reason),
            ticks=add_counts(self.ticks, other.ticks),
            users=_add_keyed(self.users, other.users),
            models=_add_keyed(self.models, other.models),
            groups=_add_keyed(self.groups, other.groups),
            group_hosts=add_counts(self.group_hosts, other.group_hosts),
            hours=_add_hours(self.hours, other.hours),
        )


def _add_known(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _add_keyed(left: Mapping[K, Summable], right: Mapping[K, Summable]) -> dict[K, Summable]:
    total = dict(left)
    for key, value in right.items():
        total[key] = total[key] + value if key in total else value
    return total


def _add_hours(
    left: Mapping[tuple[int, int], States], right: Mapping[tuple[int, int], States]
) -> dict[tuple[int, int], States]:
    total = dict(left)
    for key, value in right.items():
        total[key] = add_states(total[key], value) if key in total else value
    return total


def add_all(parts: Iterable[FleetSums]) -> FleetSums:
    """The sum of any number of parts, none included.

    Neighbours first, then their sums: so a user's row is copied once for each doubling, not once for each host.
    """
    level = list(parts)
    while len(level) > 1:
        level = [sum(level[place + 1 : place + 2], level[place]) for place in range(0, len(level), 2)]
    return level[0] if level else FleetSums()
