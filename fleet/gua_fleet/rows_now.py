"""What is so now, as tables and lines: free cards, holds, cards that say nothing. Pure. Like `rows`, for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from gua.report.cells import UNKNOWN, count, gigabytes, hours, model
from gua.text import shown
from gua.units import format_duration, parse_time_ms
from gua_fleet.model import Document
from gua_fleet.name_columns import fitted, rooms
from gua_fleet.rows import WIDE, Table
from gua_fleet.rows_stored import reported
from gua_fleet.short_names import short_names

_MODEL_WIDTH = 26
_TOP_HOLDS = 15
_MOST_PLACES = 40
_MB_PER_GB = 1024
_EXCUSED = "*"


def free_text(document: Document) -> str:
    """`7 cards free: gpu03:0,2 gpu05:1-3`; slices are told apart; a host with cards of no known index ends in `-`."""
    cards, slices = _cards_and_slices(document)
    if not document["free"]:
        return _none_free(document)
    kinds = [(cards, "card", "cards"), (slices, "MIG slice", "MIG slices")]
    named = [f"{number} {one if number == 1 else more}" for number, one, more in kinds if number]
    places: dict[str, list[int | None]] = defaultdict(list)
    for card in document["free"]:
        places[card["host"]].append(card["index"])
    texts = [f"{shown(host)}:{ranges(indexes, ',')}" for host, indexes in places.items()]
    more = f" and on {len(texts) - _MOST_PLACES} more hosts" if len(texts) > _MOST_PLACES else ""
    return f"{' and '.join(named)} free: {' '.join(texts[:_MOST_PLACES])}{more}{_stale_text(document)}"


def _none_free(document: Document) -> str:
    """Only of hosts that reported can it be said."""
    if not any(host["card_s"] is not None and reported(host) for host in document["hosts"]):
        return "Which cards are free is not known."
    if document["stale"]:
        return f"No card is known to be free{_stale_text(document)}"
    whole = all(reported(host) for host in document["hosts"]) and not document["apart"]
    return "No card is free now." if whole else "No card is free on the hosts that reported."


def _stale_text(document: Document) -> str:
    """What is not known because nobody looked lately; nothing where all samples are fresh."""
    hosts = [f"{shown(row['host'])} ({row['cards']})" for row in document["stale"]]
    more = f" and {len(hosts) - _MOST_PLACES} more hosts" if len(hosts) > _MOST_PLACES else ""
    return f"; last looked at too long ago: {', '.join(hosts[:_MOST_PLACES])}{more}" if hosts else ""


def _cards_and_slices(document: Document) -> tuple[int, int]:
    slices = sum(card["mig"] for card in document["free"])
    return len(document["free"]) - slices, slices


def free_table(document: Document, columns: int | None = WIDE) -> Table:
    """Free cards now, one row for each host and model, with the cards' indexes and the longest time free."""
    kinds: dict[tuple[str, str, int | None], list[Mapping[str, Any]]] = defaultdict(list)
    for card in document["free"]:
        kinds[(card["host"], card["name"], card["memory_total_mb"])].append(card)
    now_ms = parse_time_ms(document["generated_at"])
    headers = ("host", "model", "memory", "free", "cards", "longest for")
    figures = [
        (
            fitted(model(shown(name)), None if columns is None else _MODEL_WIDTH),
            _memory(memory_mb),
            count(len(cards)),
            ranges([card["index"] for card in cards]),
            format_duration(max(0, now_ms - min(parse_time_ms(card["since"]) for card in cards))),
        )
        for (_, name, memory_mb), cards in kinds.items()
    ]
    hosts = [host for host, _, _ in kinds]
    (width,) = rooms([["host", *map(shown, hosts)]], list(zip(headers[1:], *figures, strict=True)), columns)
    names = short_names(list(dict.fromkeys(hosts)), width)
    rows = tuple((names[host], *cells) for host, cells in zip(hosts, figures, strict=True))
    return Table("Free now", headers, rows, "llrrlr", spare=("longest for", "free"))


def hold_table(document: Document, columns: int | None = WIDE, top: int | None = _TOP_HOLDS) -> Table:
    """Processes that hold a card now, by what they held without work, most first. `*`: excused."""
    holds = current_holds(document)
    listed, now_ms = holds[:top], parse_time_ms(document["generated_at"])
    headers = ("user", "host", "card", "process", "GB", "held for", "idle-held h")
    figures = [
        (
            count(hold["index"]),
            gigabytes(hold["memory_mb"]),
            format_duration(max(0, now_ms - parse_time_ms(hold["since"]))),
            hours(hold["states"]["idle-held"]) + (_EXCUSED if hold["excuse"] else ""),
        )
        for hold in listed
    ]
    named = [[word, *(shown(hold[word]) for hold in listed)] for word in ("user", "host", "process")]
    beside = list(zip(("card", *headers[4:]), *figures, strict=True))
    user_width, host_width, process_width = rooms(named, beside, columns)
    hosts = short_names(list(dict.fromkeys(hold["host"] for hold in listed)), host_width)
    rows = tuple(
        (
            fitted(shown(hold["user"]), user_width),
            hosts[hold["host"]],
            card,
            fitted(shown(hold["process"]), process_width),
            *rest,
        )
        for hold, (card, *rest) in zip(listed, figures, strict=True)
    )
    return Table("Holds now", headers, rows, "llrlrrr", more=len(holds) - len(rows), spare=("GB", "held for"))


def current_holds(document: Document) -> list[Mapping[str, Any]]:
    """Holds that are still there, the most idle-held time first."""
    holds = [hold for hold in document["holds"] if hold["until"] is None]
    return sorted(holds, key=lambda hold: (-hold["states"]["idle-held"], hold["host"], hold["card"], hold["pid"]))


def excuse_lines(document: Document) -> list[str]:
    """Each reason with how many holds it excuses; none of it is out of any sum."""
    reasons: dict[str, int] = defaultdict(int)
    for hold in current_holds(document):
        if hold["excuse"]:
            reasons[hold["excuse"]] += 1
    return [
        f"{_EXCUSED} excused ({number} hold{'' if number == 1 else 's'}), counted all the same: {shown(reason, 200)}"
        for reason, number in reasons.items()
    ]


def scheduler_lines(document: Document) -> list[str]:
    """Idle cards that a scheduler gives out: idle, but not for anyone to take. One line per host."""
    hosts: dict[tuple[str, str], int] = defaultdict(int)
    for card in document["scheduler_idle"]:
        hosts[(card["host"], card["scheduler"])] += 1
    return [
        f"{shown(host)}: {number} idle, given out by {shown(scheduler)}, so not counted as free"
        for (host, scheduler), number in hosts.items()
    ]


def not_measurable_lines(document: Document) -> list[str]:
    """Cards held now whose activity the driver does not tell: neither idle nor active. One line per host."""
    hosts: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for card in document["not_measurable"]:
        hosts[card["host"]].append(card)
    return [
        f"{shown(host)}: held, activity not measurable: {ranges([card['index'] for card in cards])} "
        f"({', '.join(sorted({shown(user) for card in cards for user in card['users']}))})"
        for host, cards in hosts.items()
    ]


def ranges(indexes: list[int | None], separator: str = ", ") -> str:
    """Indexes of cards in few characters: `0-2, 5`; `-` for those whose index is not known."""
    spans: list[list[int]] = []
    for index in sorted({index for index in indexes if index is not None}):
        if spans and spans[-1][-1] == index - 1:
            spans[-1].append(index)
        else:
            spans.append([index])
    texts = [f"{span[0]}-{span[-1]}" if len(span) > 1 else str(span[0]) for span in spans]
    return separator.join(texts + [UNKNOWN] * (None in indexes))


def _memory(memory_mb: int | None) -> str:
    return UNKNOWN if memory_mb is None else f"{memory_mb / _MB_PER_GB:.0f} GB"
