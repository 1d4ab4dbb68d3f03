"""Which cards somebody could work on now, and why others are not among them. Pure.

A card is free when it is truly-idle now, was seen within three intervals, and no scheduler gives it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gua.errors import UsageError
from gua_fleet.present import CardNow, HostNow, all_cards

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([mgt]?)(?:i?b)?", re.IGNORECASE)
# A card sold as 80 GB has 79.6 of them, and the driver keeps a little for itself.
_ENOUGH = 0.98
_MB_PER = {"m": 1, "g": 1024, "": 1024, "t": 1024 * 1024}


@dataclass(frozen=True)
class Wanted:
    """What a card has to have; None: no matter. model: a part of its name, or a shell pattern of all of it.

    memory_mb: free on it; 2 % less will do, because that is how much smaller cards are than their names.
    """

    model: str | None = None
    memory_mb: int | None = None
    free_s: float | None = None

    def is_model(self, card: CardNow) -> bool:
        if self.model is None:
            return True
        name, asked = card.model.casefold(), self.model.casefold()
        return fnmatchcase(name, asked) if any(mark in asked for mark in "*?[") else asked in name

    def has_memory(self, card: CardNow) -> bool | None:
        """None where that is not known."""
        if self.memory_mb is None:
            return True
        enough_mb = _ENOUGH * self.memory_mb
        if card.memory_total_mb is not None and card.memory_total_mb < enough_mb:
            return False
        return None if card.memory_free_mb is None else card.memory_free_mb >= enough_mb

    def is_long_free(self, card: CardNow) -> bool:
        return self.free_s is None or card.state_s >= self.free_s


@dataclass(frozen=True)
class FreeCards:
    """free: best first. memory_unknown: would be free, if they have the memory. others: free, and not what was wanted.

    scheduled: idle cards that a scheduler gives out, each with its name. idle_held: the cards of the wanted model that
    are held without work, the longest first.
    """

    free: Sequence[CardNow]
    memory_unknown: Sequence[CardNow]
    others: Sequence[CardNow]
    scheduled: Sequence[tuple[CardNow, str]]
    idle_held: Sequence[CardNow]


def find_free(hosts: Sequence[HostNow], wanted: Wanted) -> FreeCards:
    """Sort the fleet's cards out."""
    schedulers = {host.name: host.scheduler for host in hosts if host.scheduler}
    idle = [card for card in all_cards(hosts) if card.state_now == "truly-idle"]
    open_cards = [card for card in idle if card.host not in schedulers]
    asked = [card for card in open_cards if wanted.is_model(card) and wanted.is_long_free(card)]
    free = [card for card in asked if wanted.has_memory(card)]
    unknown = [card for card in asked if wanted.has_memory(card) is None]
    chosen = {(card.host, card.uuid) for card in (*free, *unknown)}
    return FreeCards(
        free=_best_first(free, wanted),
        memory_unknown=unknown,
        others=[card for card in open_cards if (card.host, card.uuid) not in chosen],
        scheduled=[(card, schedulers[card.host]) for card in idle if card.host in schedulers],
        idle_held=sorted(
            (card for card in all_cards(hosts) if card.state_now == "idle-held" and wanted.is_model(card)),
            key=lambda card: (-card.state_s, card.host, card.index or 0),
        ),
    )


def _best_first(cards: Sequence[CardNow], wanted: Wanted) -> list[CardNow]:
    """Where memory was asked for, the smallest that is enough comes first: the big cards stay for those who need them.
    Then the host with the most such cards, since that is where several can be had; then those that are free longest.
    """
    number: dict[tuple[str, str], int] = {}
    for card in cards:
        number[(card.host, card.model)] = number.get((card.host, card.model), 0) + 1

    def rank(card: CardNow) -> tuple[int, int, str, str, float]:
        size = (card.memory_total_mb or 0) if wanted.memory_mb is not None else 0
        return size, -number[(card.host, card.model)], card.host, card.model, -card.state_s

    return sorted(cards, key=rank)


def parse_memory_mb(text: str) -> int:
    """MiB of `40G`, `40GB`, `40` (all GiB), `500M`. Raises UsageError for anything else."""
    found = _SIZE.fullmatch(text.strip())
    amount_mb = round(float(found[1]) * _MB_PER[found[2].lower()]) if found else 0
    if not 0 < amount_mb < 1 << 40:
        raise UsageError(f"not an amount of memory: {text[:40]!r} (write 40G, 500M)")
    return amount_mb


def unseen_hosts(hosts: Iterable[HostNow]) -> list[HostNow]:
    """Hosts whose cards are not known now: silent ones, and those whose newest sample is too old."""
    return [host for host in hosts if (not host.known and host.outcome != "no-gpu") or host.stale]
