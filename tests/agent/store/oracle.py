"""The report's figures computed the slow and obvious way: second by second, from the ticks themselves.

Shares nothing with the store but the words. Every time in the ticks and the window must be a whole second.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Optional

from gua.model import CardTick, ProcessType, Rule, State, Tick

Breaks = Mapping[str, Mapping[int, int]]
"""uuid -> number of a tick -> time (ms) at which the card was retired just before that tick."""


@dataclass
class Figures:
    card_s: Counter[tuple[str, str]] = field(default_factory=Counter)  # (uuid, state)
    energy_j: Counter[tuple[str, str]] = field(default_factory=Counter)
    samples: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    hours: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    expected_s: Counter[str] = field(default_factory=Counter)
    ticks: Counter[str] = field(default_factory=Counter)
    intervals: set[float] = field(default_factory=set)
    user_card_s: Counter[tuple[str, str]] = field(default_factory=Counter)  # (user, state)
    user_share_s: defaultdict[str, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    user_shared_s: Counter[str] = field(default_factory=Counter)
    user_long_s: Counter[str] = field(default_factory=Counter)
    user_samples: Counter[str] = field(default_factory=Counter)


def holders_of(card: CardTick) -> set[str]:
    """Users to charge for a card at one tick."""
    if card.evidence.holders is None:
        return set()
    users = {one.identity.user for one in card.holders if one.process.type is not ProcessType.GRAPHICS}
    if not users and card.verdict.state is State.IDLE_HELD:
        return {"unattributed"}
    return users


def owned_seconds(ticks: Sequence[Tick]) -> list[list[int]]:
    """For each tick the seconds it covers: those of its time that no tick before it had."""
    owner: dict[int, int] = {}
    owned: list[list[int]] = []
    for number, tick in enumerate(ticks):
        wanted = range(tick.ts_ms // 1000, (tick.ts_ms + tick.cover_ms) // 1000)
        owned.append([second for second in wanted if owner.setdefault(second, number) == number])
    return owned


NEVER: Breaks = {}


def rule_s(card: CardTick, long_s: int) -> int:
    """From how much idle-held time on a stretch is long, by the card's own rule where it has one."""
    return long_s if card.rule is None else card.rule.long_idle_s


def long_ticks(
    ticks: Sequence[Tick], owned: Sequence[list[int]], uuid: str, long_s: int, breaks: Breaks = NEVER
) -> set[int]:
    """Numbers of the ticks of one card that belong to a long idle-held stretch."""
    stretches: list[list[int]] = []
    least_s: list[int] = []
    rule: Optional[Rule] = None
    going_on = False
    for number, tick in enumerate(ticks):
        if number in breaks.get(uuid, {}):
            going_on = False
        card = {one.reading.uuid: one for one in tick.cards}.get(uuid)
        if card is None or (card.verdict.state is State.IDLE_HELD and not owned[number]):
            continue
        if card.verdict.state is not State.IDLE_HELD:
            going_on = False
            continue
        if going_on:
            gap = owned[number][0] - (owned[stretches[-1][-1]][-1] + 1)
            going_on = 0 <= gap <= tick.cover_ms // 1000 and card.rule == rule
        if going_on:
            stretches[-1].append(number)
        else:
            stretches.append([number])
            least_s.append(rule_s(card, long_s))
        going_on, rule = True, card.rule
    return {
        number
        for stretch, least in zip(stretches, least_s)
        if owned[stretch[-1]][-1] + 1 - owned[stretch[0]][0] >= least
        for number in stretch
    }


def after_retirements(ticks: Sequence[Tick], breaks: Breaks) -> tuple[list[Tick], dict[str, int]]:
    """The ticks as they are stored, and when the cards were retired that are out of service in the end (ms).

    A retired card that does not answer is no longer this host's; one that answers is in service again.
    """
    stored, retired = [], dict[str, int]()
    for number, tick in enumerate(ticks):
        for uuid, at in breaks.items():
            if number in at and _met(ticks[:number], uuid):
                retired.setdefault(uuid, at[number])  # retired once is retired
        cards = tuple(c for c in tick.cards if c.reading.absent is None or c.reading.uuid not in retired)
        for card in cards:
            retired.pop(card.reading.uuid, None)
        stored.append(replace(tick, cards=cards))
    return stored, retired


def _met(ticks: Sequence[Tick], uuid: str) -> bool:
    return any(card.reading.uuid == uuid for tick in ticks for card in tick.cards)


def figures(ticks: Sequence[Tick], since_s: int, until_s: int, long_s: int, breaks: Breaks = NEVER) -> Figures:
    """Everything about the window."""
    ticks, retired = after_retirements(ticks, breaks)
    found, owned = Figures(), owned_seconds(ticks)
    uuids = {card.reading.uuid for tick in ticks for card in tick.cards}
    long = {uuid: long_ticks(ticks, owned, uuid, long_s, breaks) for uuid in uuids}
    for number, tick in enumerate(ticks):
        seconds = [second for second in owned[number] if since_s <= second < until_s]
        inside = since_s <= tick.ts_ms // 1000 < until_s
        if inside:
            found.ticks[tick.status.value] += 1
            found.intervals.update({tick.cover_ms / 1000} - {0.0})
        for card in tick.cards:
            _add_card(found, card, seconds, inside, number in long[card.reading.uuid])
    for uuid in uuids:
        first_s = min(t.ts_ms // 1000 for t in ticks for c in t.cards if c.reading.uuid == uuid)
        end_s = min(until_s, max(first_s, retired[uuid] // 1000)) if uuid in retired else until_s
        found.expected_s[uuid] = max(0, end_s - max(since_s, first_s))
    return found


def _add_card(found: Figures, card: CardTick, seconds: list[int], inside: bool, is_long: bool) -> None:
    uuid, state, users = card.reading.uuid, card.verdict.state.value, holders_of(card)
    found.card_s[uuid, state] += len(seconds)
    found.energy_j[uuid, state] += round((card.reading.power_w or 0) * len(seconds))
    found.samples[uuid] += inside
    if card.verdict.reason is not None:
        found.reasons[card.verdict.reason.value] += len(seconds)
    for second in seconds:
        # 1970-01-01 was a Thursday.
        found.hours[(second // 86_400 + 3) % 7, second // 3_600 % 24, state] += 1
    for user in users:
        found.user_card_s[user, state] += len(seconds)
        found.user_share_s[user] += Fraction(len(seconds), len(users))
        found.user_shared_s[user] += len(seconds) if len(users) > 1 else 0
        found.user_long_s[user] += len(seconds) if is_long else 0
        found.user_samples[user] += inside


def hold_lives(ticks: Sequence[Tick], long_s: int, breaks: Breaks = NEVER) -> list[dict[str, Any]]:
    """Every hold that ever was, graphics left out: card, (pid, user), seconds by state, long seconds, still open."""
    ticks, _ = after_retirements(ticks, breaks)
    owned, lives = owned_seconds(ticks), []
    uuids = {card.reading.uuid for tick in ticks for card in tick.cards}
    for uuid in sorted(uuids):
        long = long_ticks(ticks, owned, uuid, long_s, breaks)
        open_: dict[Any, dict[str, Any]] = {}
        for number, tick in enumerate(ticks):
            if number in breaks.get(uuid, {}):
                lives += [{**life, "open": False} for life in open_.values()]
                open_ = {}
            for card in tick.cards:
                if card.reading.uuid != uuid or card.evidence.holders is None:
                    continue
                seen = {
                    (h.process.pid, h.identity.user) for h in card.holders if h.process.type is not ProcessType.GRAPHICS
                }
                lives += [open_.pop(key) | {"open": False} for key in set(open_) - seen]
                for key in seen:
                    life = open_.setdefault(key, {"card": uuid, "key": key, "s": Counter(), "long": 0, "open": True})
                    life["s"][card.verdict.state.value] += len(owned[number])
                    life["long"] += len(owned[number]) if number in long else 0
        lives += open_.values()
    return lives
