"""The fleet's tables as data: headers and rows of ready cells, from a `gua.fleet-report/1` document. Pure.

Unknown prints "-", zero prints "0". Names that come from workloads or hosts are escaped here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wcwidth import wcswidth

from gua.model import State
from gua.report.cells import UNKNOWN, count, equivalent_cards, fit, hours, model, percent
from gua.shares import format_share, share
from gua.text import shown
from gua.units import format_duration, parse_time_ms
from gua_fleet.model import Document, Outcome

_KNOWN = (State.ACTIVE, State.IDLE_HELD, State.TRULY_IDLE)
# Chosen so that no table is wider than 100 columns, nor than 80 where there are no more.
_WIDE = 100
_MODEL_WIDTH = 26
_NAME_WIDTH = 20
_USER_WIDTH = 34
_FREE_HOST_WIDTH = 30
_HOST_AND_OUTCOME_WIDTH = 37
_TOP_USERS = 20
_MB_PER_GB = 1024


@dataclass(frozen=True)
class Table:
    """headers and rows have one cell per letter of `align` (l or r). more: how many rows were left out."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    more: int = 0


def headline_table(document: Document) -> Table:
    """The whole fleet's time by state, unknown and not seen included."""
    states, coverage = document["card_s"], document["coverage"]
    expected = coverage["expected_card_s"]
    known_s = sum(states[state.value] for state in _KNOWN)
    seen_cards = sum(host["cards"] or 0 for host in document["hosts"] if host["card_s"] is not None)
    rows = [
        (
            state.value,
            format_share(share(states, state, expected)),
            hours(states[state.value]),
            equivalent_cards(states[state.value], known_s, seen_cards),
        )
        for state in _KNOWN
    ]
    for name, amount in (("unknown", states["unknown"]), ("not seen", coverage["unobserved_card_s"])):
        rows.append((name, f"{percent(amount, expected)} of expected", hours(amount), UNKNOWN))
    headers = ("state", "share (bounds)", "GPU-hours", "equivalent cards")
    return Table("Where the card time went", headers, tuple(rows), "llrr")


def model_table(document: Document, columns: int = _WIDE) -> Table:
    """One row per model of the hosts that answered; MIG slices stand apart and are no whole cards."""
    rows = [
        (
            fit(_kind(row), _narrower(_MODEL_WIDTH, columns)),
            count(row["cards"]),
            *_state_cells(row["card_s"], row["expected_card_s"]),
        )
        for row in sorted(document["models"], key=lambda row: (row["mig"], -row["expected_card_s"], row["name"]))
    ]
    return Table("By model", ("model", "cards", *_STATE_HEADERS), tuple(rows), "lr" + _STATE_ALIGN)


def host_table(document: Document, columns: int = _WIDE) -> Table:
    """Every host of the inventory, in its order, whether it answered or not."""
    outcomes = [shown(host["outcome"]) for host in document["hosts"]]
    width = _narrower(_HOST_AND_OUTCOME_WIDTH, columns) - max(map(len, ["outcome", *outcomes]))
    names = short_names([host["name"] for host in document["hosts"]], width)
    rows = []
    for host, outcome in zip(document["hosts"], outcomes, strict=True):
        states, coverage = host["card_s"], host["coverage"]
        cells = (UNKNOWN,) * 5 if states is None else _state_cells(states, coverage["expected_card_s"])[:5]
        rows.append((names[host["name"]], outcome, count(host["cards"]), *cells))
    return Table("By host", ("host", "outcome", "cards", *_STATE_HEADERS[:5]), tuple(rows), "llr" + _STATE_ALIGN[:5])


def user_table(document: Document, columns: int = _WIDE) -> Table:
    """Users by what they held without working, most first."""
    users = sorted(document["users"], key=lambda user: (-user["idle_held_card_s"], -user["card_s"], user["user"]))
    rows = [
        (
            fit(shown(user["user"]), _narrower(_USER_WIDTH, columns)),
            hours(user["card_s"]),
            hours(user["share_s"]),
            hours(user["idle_held_card_s"]),
            hours(user["idle_held_long_card_s"]),
            count(len(user["hosts"])),
        )
        for user in users[:_TOP_USERS]
    ]
    headers = ("user", "GPU-hours", "share hours", "idle-held", "of it long", "hosts")
    return Table("By user", headers, tuple(rows), "lrrrrr", more=max(0, len(users) - _TOP_USERS))


def group_table(document: Document, columns: int = _WIDE) -> Table:
    """Sums of the inventory's groups; a host in two groups is in both."""
    names = short_names([row["name"] for row in document["groups"]], _narrower(_NAME_WIDTH, columns))
    rows = [
        (
            names[row["name"]],
            count(row["hosts"]),
            count(row["cards"]),
            *_state_cells(row["card_s"], row["expected_card_s"]),
        )
        for row in document["groups"]
    ]
    return Table("By group", ("group", "hosts", "cards", *_STATE_HEADERS), tuple(rows), "lrr" + _STATE_ALIGN)


def free_table(document: Document, columns: int = _WIDE) -> Table:
    """Free cards now, one row for each host and model, with the cards' indexes and the longest time free."""
    kinds: dict[tuple[str, str, int | None], list[Mapping[str, Any]]] = defaultdict(list)
    for card in document["free"]:
        kinds[(card["host"], card["name"], card["memory_total_mb"])].append(card)
    now_ms = parse_time_ms(document["generated_at"])
    names = short_names(list(dict.fromkeys(host for host, _, _ in kinds)), _narrower(_FREE_HOST_WIDTH, columns))
    rows = [
        (
            names[host],
            fit(model(shown(name)), _MODEL_WIDTH),
            UNKNOWN if memory_mb is None else f"{memory_mb / _MB_PER_GB:.0f} GB",
            count(len(cards)),
            _ranges([card["index"] for card in cards]),
            format_duration(max(0, now_ms - min(parse_time_ms(card["since"]) for card in cards))),
        )
        for (host, name, memory_mb), cards in kinds.items()
    ]
    headers = ("host", "model", "memory", "free", "cards", "longest for")
    return Table("Free now", headers, tuple(rows), "llrrlr")


def scheduler_lines(document: Document) -> list[str]:
    """Idle cards that a scheduler gives out: idle, but not for anyone to take. One line per host."""
    hosts: dict[tuple[str, str], int] = defaultdict(int)
    for card in document["scheduler_idle"]:
        hosts[(card["host"], card["scheduler"])] += 1
    return [
        f"{shown(host)}: {number} idle, given out by {shown(scheduler)}, so not counted as free"
        for (host, scheduler), number in hosts.items()
    ]


def silent_hosts(document: Document) -> list[Mapping[str, Any]]:
    """The rows of hosts that sent no report, in inventory order."""
    return [host for host in document["hosts"] if host["outcome"] != "ok"]


def answered_text(document: Document) -> str:
    """How many hosts reported, and by name those that failed, that were not asked, and that had nothing to report."""
    total, silent = len(document["hosts"]), silent_hosts(document)
    text = f"{total - len(silent)} of {total} hosts reported."
    for title in ("No answer", "Not asked", "Nothing to report"):
        alike: dict[tuple[str, int | None], list[str]] = defaultdict(list)
        for host in silent:
            if _silence(host) == title:
                alike[host["outcome"], host["cards"]].append(shown(host["name"]))
        named = [f"{', '.join(names)} ({_why(*kind, len(names))})" for kind, names in alike.items()]
        text += f" {title}: {'; '.join(named)}." if named else ""
    return text


def _silence(host: Mapping[str, Any]) -> str:
    if host["failed"]:
        return "No answer"
    not_asked = (Outcome.SKIPPED.value, Outcome.MAINTENANCE.value)
    return "Not asked" if host["outcome"] in not_asked else "Nothing to report"


def _why(outcome: str, cards: int | None, hosts: int) -> str:
    """The outcome, and how many cards that leaves unseen on each host."""
    if outcome == Outcome.NO_GPU.value:
        return outcome
    if cards is None:
        return f"{shown(outcome)}, {'its' if hosts == 1 else 'their'} cards are not known"
    return f"{shown(outcome)}, {cards} card{'' if cards == 1 else 's'}{'' if hosts == 1 else ' each'}"


def coverage_text(document: Document) -> str:
    """What part of the expected time was seen, and why the rest of it is unknown."""
    coverage = document["coverage"]
    expected, observed = coverage["expected_card_s"], coverage["observed_card_s"]
    text = f"Seen: {hours(observed)} of {hours(expected)} expected GPU-hours ({percent(observed, expected)})."
    reasons = [f"{shown(reason)} {hours(amount)}" for reason, amount in coverage["unknown_by_reason"].items()]
    return text + (f" Unknown, in hours: {', '.join(reasons)}." if reasons else "")


_STATE_HEADERS = ("active", "idle-held", "truly-idle", "unknown", "seen", "GPU-h")
_STATE_ALIGN = "rlrrrr"


def _state_cells(states: Mapping[str, float], expected: float) -> tuple[str, ...]:
    known = sum(states[state.value] for state in _KNOWN)
    observed = known + states["unknown"]
    return (
        percent(states["active"], known),
        format_share(share(states, State.IDLE_HELD, expected)),
        percent(states["truly-idle"], known),
        percent(states["unknown"], expected),
        percent(observed, expected),
        hours(observed),
    )


def _ranges(indexes: list[int | None]) -> str:
    """Indexes of cards in few characters: `0-2, 5`; `-` for those whose index is not known."""
    spans: list[list[int]] = []
    for index in sorted(index for index in indexes if index is not None):
        if spans and spans[-1][-1] == index - 1:
            spans[-1].append(index)
        else:
            spans.append([index])
    texts = [f"{span[0]}-{span[-1]}" if len(span) > 1 else str(span[0]) for span in spans]
    return ", ".join(texts + [UNKNOWN] * (None in indexes))


def _kind(row: Mapping[str, Any]) -> str:
    name = model(shown(row["name"]))
    return f"MIG {name}" if row["mig"] else name


def _narrower(width: int, columns: int) -> int:
    """A column's width where there are only `columns` for the whole table."""
    return max(12, width - max(0, _WIDE - columns) // 2)


def short_names(names: Sequence[str], width: int) -> dict[str, str]:
    """Each name as a cell of `width` columns if it can be told from the others there; harmless to a terminal.

    First the domain goes that all dotted names share, then the middle or the end, whichever leaves no two alike. Where
    nothing does, they stay as they are: a table too wide beats one that does not say whose row it is.
    """
    cells = [shown(name) for name in names]
    if max(map(wcswidth, cells), default=0) > width:
        domain = _shared_domain([cell for cell in cells if "." in cell])
        bare = [cell.removesuffix(domain) for cell in cells]
        tries = ([_without_middle(cell, width) for cell in bare], [fit(cell, width) for cell in bare], cells)
        cells = next(short for short in tries if len(set(short)) == len(set(cells)))
    return dict(zip(names, cells, strict=True))


def _shared_domain(names: Sequence[str]) -> str:
    """`.cluster.example.org` where every name ends in it and begins with more than it; else nothing."""
    parts = [name.split(".")[::-1] for name in names]
    shared = 0
    while len(names) > 1 and all(len(part) > shared + 1 for part in parts) and len({p[shared] for p in parts}) == 1:
        shared += 1
    return "".join(f".{part}" for part in reversed(parts[0][:shared])) if shared else ""


def _without_middle(text: str, width: int) -> str:
    if wcswidth(text) <= width:
        return text
    half = (width - 2) // 2
    tail = text[-half:]
    while wcswidth(tail) > half:
        tail = tail[1:]
    head = text[:half]
    while wcswidth(head) > half:
        head = head[:-1]
    return f"{head}..{tail}"
