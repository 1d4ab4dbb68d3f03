"""Several histories of one host as one: the same card, user and rule have one id, whatever each database called them.

Most hosts have one history. One that was installed anew, or went back to an older copy of its database, has more; the
store leaves out what would count twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gua.model import Rule
from gua.store.devices import DeviceRow
from gua.store.reader import UserRow
from gua.store.sums import WindowSums
from gua_fleet.store.facts import Facts
from gua_fleet.store.histories import HistoryRow
from gua_fleet.store.holds import Holds


@dataclass(frozen=True)
class Part:
    """What is read of one history. All ids are its own. sums: of the window."""

    history: HistoryRow
    sums: WindowSums
    facts: Facts
    holds: Holds


@dataclass(frozen=True)
class Whole:
    """One host. Ids are made here. rules: oldest first. run_rules: as in Part."""

    sums: WindowSums
    devices: tuple[DeviceRow, ...]
    users: Mapping[int, UserRow]
    rules: Mapping[int, Rule]
    run_rules: frozenset[int]


def whole_of(parts: Sequence[Part]) -> Whole:
    """parts: oldest first, the present history last."""
    if len(parts) == 1:
        part = parts[0]
        return Whole(
            part.sums, tuple(part.facts.devices), part.facts.users, part.facts.rules, frozenset(part.facts.run_rules)
        )
    devices, users, rules = _devices(parts), dict[str, tuple[int, UserRow]](), dict[Rule, int]()
    sums, run_rules = WindowSums(), set[int]()
    ids = {row.uuid: row.id for row in devices}
    for part in parts:
        rule_ids = {number: rules.setdefault(rule, len(rules) + 1) for number, rule in sorted(part.facts.rules.items())}
        user_ids = {}
        for number, user in part.facts.users.items():
            user_ids[number] = users[user.name][0] if user.name in users else len(users) + 1
            users[user.name] = (user_ids[number], user)
        _add(sums, part.sums, {row.id: ids[row.uuid] for row in part.facts.devices}, user_ids, rule_ids)
        run_rules |= {rule_ids[number] for number in part.facts.run_rules if number in rule_ids}
    return Whole(
        sums, devices, dict(users.values()), {number: rule for rule, number in rules.items()}, frozenset(run_rules)
    )


def _devices(parts: Sequence[Part]) -> tuple[DeviceRow, ...]:
    """Each card once, as the newest history that has it knows it, expected from where the oldest first saw it.

    One that a later history does not know was taken out when that began, if it was not before.
    """
    known: dict[str, DeviceRow] = {}
    seen_ms = 0
    for part in parts:
        here = {row.uuid for row in part.facts.devices}
        if here and part.facts.begins_ms is not None:
            # a copy begins before what was lost of it ended
            began_ms = max(part.facts.begins_ms, seen_ms)
            for uuid in known.keys() - here:
                gone_ms = known[uuid].retired_at_ms
                known[uuid] = replace(known[uuid], retired_at_ms=min(gone_ms or began_ms, began_ms))
        seen_ms = max(seen_ms, _seen_ms(part))
        for row in part.facts.devices:
            before = known.get(row.uuid)
            first_ms = row.first_seen_ms if before is None else min(before.first_seen_ms, row.first_seen_ms)
            known[row.uuid] = replace(row, first_seen_ms=first_ms)
    return tuple(replace(row, id=number) for number, row in enumerate(in_display_order(known.values()), 1))


def _seen_ms(part: Part) -> int:
    """Until when the host is known to have had this history, nearly: its newest single tick's end, or its last pull."""
    newest_ms = part.history.anchor_ms
    return part.history.pulled_ms if newest_ms is None else newest_ms + (part.facts.interval_ms or 0)


def in_display_order(rows: Iterable[DeviceRow]) -> list[DeviceRow]:
    """As a report lists cards."""
    return sorted(rows, key=lambda row: (row.index is None, row.index or 0, row.id))


def _add(
    sums: WindowSums,
    more: WindowSums,
    devices: Mapping[int, int],
    users: Mapping[int, int],
    rules: Mapping[int, int],
) -> None:
    for (device, verdict), amounts in more.cards.items():
        _add_amounts(sums.cards[devices[device], verdict], amounts)
    for (user, state), amounts in more.users.items():
        _add_amounts(sums.users[users[user], state], amounts)
    for (device, state), held_ms in more.held.items():
        sums.held[devices[device], state] += held_ms
    for (user, device), held_ms in more.user_cards.items():
        sums.user_cards[users[user], devices[device]] += held_ms
    for slot, covered_ms in more.slots.items():
        sums.slots[slot] += covered_ms
    for kind, ticks in more.ticks.items():
        sums.ticks[kind] += ticks
    sums.card_rules |= {(devices[device], rules[rule]) for device, rule in more.card_rules if rule in rules}


def _add_amounts(sums: list[int], more: Iterable[int]) -> None:
    for position, amount in enumerate(more):
        sums[position] += amount
