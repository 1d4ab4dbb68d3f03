"""What `gua-fleet free` says. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from gua.report.cells import UNKNOWN, gigabytes, model
from gua.text import shown
from gua.units import MS_PER_SECOND, format_duration
from gua_fleet.free import FreeCards, Wanted
from gua_fleet.present import CardNow, HostNow
from gua_fleet.rows_now import ranges
from gua_fleet.view import Section, View
from gua_fleet.view_hosts import host_documents, unseen_lines, unseen_section

SCHEMA = "gua.fleet-free/1"
HEADERS = ("host", "cards", "model", "free GB", "of GB", "free for")
BASIS = "Free: truly-idle by the newest sample, not older than three intervals, and not given out by a scheduler."

_MOST_PLACES = 20
_CARD_COLUMNS = ("host", "index", "uuid", "model", "mig", "memory_total_mb", "memory_free_mb", "free_s")


def free_view(found: FreeCards, wanted: Wanted, hosts: Sequence[HostNow], *, generated_at: str) -> View:
    """Everything `gua-fleet free` has to say. generated_at: this machine's time, ISO 8601 in UTC."""
    flat = [_free_card(card) for card in found.free]
    document = {
        "schema": SCHEMA,
        "generated_at": generated_at,
        "wanted": {"model": wanted.model, "memory_mb": wanted.memory_mb, "free_s": wanted.free_s},
        "free": flat,
        "memory_unknown": [_free_card(card) for card in found.memory_unknown],
        "others": [_free_card(card) for card in found.others],
        "scheduler_idle": [_place(card) | {"scheduler": name} for card, name in found.scheduled],
        "idle_held": [_idle_held(card) for card in found.idle_held],
        "hosts": host_documents(hosts),
    }
    return View(
        document,
        lines=[headline(found, wanted, hosts), *_other_lines(found), *unseen_lines(hosts)],
        sections=[Section("", HEADERS, free_rows(found.free), "lllrrr"), unseen_section(hosts)],
        notes=[BASIS],
        columns=_CARD_COLUMNS,
        flat=flat,
    )


def headline(found: FreeCards, wanted: Wanted, hosts: Sequence[HostNow]) -> str:
    """`7 cards free: gpu03:0,2 gpu05:1-3`; MIG slices are told apart. Nothing is said of hosts that were not seen."""
    what = _wish(wanted)
    if found.free:
        slices = sum(card.mig for card in found.free)
        kinds = ((len(found.free) - slices, "card", "cards"), (slices, "MIG slice", "MIG slices"))
        named = " and ".join(f"{number} {one if number == 1 else more}" for number, one, more in kinds if number)
        return f"{named} free{what}: {places(found.free)}"
    if not any(host.known and not host.stale for host in hosts):
        return "Which cards are free is not known: no host said what its cards do now."
    whole = not any(host.failed or host.stale for host in hosts)
    return f"No card is free{what} now." if whole else f"No card is free{what} on the hosts that answered."


def places(cards: Iterable[CardNow]) -> str:
    """`gpu03:0,2 gpu05:1-3`; at most twenty hosts."""
    indexes: dict[str, list[int | None]] = defaultdict(list)
    for card in cards:
        indexes[card.host].append(card.index)
    texts = [f"{shown(host)}:{ranges(found, ',')}" for host, found in indexes.items()]
    more = f" and on {len(texts) - _MOST_PLACES} more hosts" if len(texts) > _MOST_PLACES else ""
    return " ".join(texts[:_MOST_PLACES]) + more


def free_rows(cards: Sequence[CardNow]) -> list[tuple[str, ...]]:
    """One row for each host, model and size, in the order of the cards; the memory that each of them has free."""
    kinds: dict[tuple[str, str, int | None], list[CardNow]] = defaultdict(list)
    for card in cards:
        kinds[(card.host, card.model, card.memory_total_mb)].append(card)
    return [
        (
            host,
            ranges([card.index for card in alike]),
            model(name),
            _least([card.memory_free_mb for card in alike]),
            gigabytes(total_mb),
            _for([card.state_s for card in alike]),
        )
        for (host, name, total_mb), alike in kinds.items()
    ]


def _other_lines(found: FreeCards) -> list[str]:
    lines = []
    if found.memory_unknown:
        lines.append(f"How much memory they have free is not known: {places(found.memory_unknown)}")
    if found.others:
        lines.append(f"{len(found.others)} more free, but not as asked: {places(found.others)}")
    by_scheduler: dict[str, list[CardNow]] = defaultdict(list)
    for card, name in found.scheduled:
        by_scheduler[name].append(card)
    lines += [
        f"{len(cards)} idle, given out by {shown(name)}, so not counted as free: {places(cards)}"
        for name, cards in by_scheduler.items()
    ]
    if not found.free and found.idle_held:
        longest = found.idle_held[0]
        lines.append(
            f"{len(found.idle_held)} held without work, the longest {places([longest])} for "
            f"{format_duration(round(longest.state_s * MS_PER_SECOND))}; `gua-fleet holds` shows who has them"
        )
    return lines


def _wish(wanted: Wanted) -> str:
    parts = []
    if wanted.model is not None:
        parts.append(f" of {shown(wanted.model)}")
    if wanted.memory_mb is not None:
        parts.append(f" with {gigabytes(wanted.memory_mb)} GB")
    if wanted.free_s is not None:
        parts.append(f" for {format_duration(round(wanted.free_s * MS_PER_SECOND))} or more")
    return "".join(parts)


def _least(amounts_mb: Sequence[int | None]) -> str:
    """What every one of them has; `-` where one is not known."""
    known = [amount for amount in amounts_mb if amount is not None]
    return gigabytes(min(known)) if known and len(known) == len(amounts_mb) else UNKNOWN


def _for(seconds: Sequence[float]) -> str:
    """`3 h 05 min`, or from the shortest to the longest."""
    ends = [format_duration(round(end * MS_PER_SECOND)) for end in (min(seconds), max(seconds))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _place(card: CardNow) -> dict[str, Any]:
    return {"host": card.host, "index": card.index, "uuid": card.uuid, "model": card.model, "mig": card.mig}


def _free_card(card: CardNow) -> dict[str, Any]:
    return _place(card) | {
        "memory_total_mb": card.memory_total_mb,
        "memory_free_mb": card.memory_free_mb,
        "free_s": card.state_s,
    }


def _idle_held(card: CardNow) -> dict[str, Any]:
    return _place(card) | {"idle_s": card.state_s, "users": sorted({holder.user for holder in card.holders})}
