"""What `gua-fleet holds` says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gua.report.cells import UNKNOWN, gigabytes
from gua.text import shown
from gua.units import MS_PER_SECOND, format_duration
from gua_fleet.holds import Filter, Hold
from gua_fleet.present import HostNow, all_cards
from gua_fleet.view import Section, View
from gua_fleet.view_free import places
from gua_fleet.view_hosts import host_documents, unseen_lines, unseen_section

SCHEMA = "gua.fleet-holds/1"
HEADERS = ("user", "host", "card", "process", "GB", "held for", "idle for")
BASIS = (
    "As sampled: a card that is idle has worked below the rule's threshold without a break for so long, while the "
    "process kept it. Why is not known here."
)
_EXCUSED = "*"
_COLUMNS = (
    *("user", "host", "index", "uuid", "model", "process", "pid", "memory_mb"),
    *("state", "held_s", "idle_s", "excuse"),
)


def holds_view(
    taken: Sequence[Hold],
    chosen: Filter,
    hosts: Sequence[HostNow],
    *,
    left_out: int,
    generated_at: str,
    names: bool = True,
) -> View:
    """Everything `gua-fleet holds` has to say. taken: the holds that were asked for; left_out: how many there are
    besides. generated_at: ISO 8601 in UTC.
    """
    flat = [_document(hold) for hold in taken]
    document = {
        "schema": SCHEMA,
        "generated_at": generated_at,
        "wanted": {"idle_s": chosen.idle_s, "held_s": chosen.held_s, "user": chosen.user},
        "names": names,
        "left_out": left_out,
        "holds": flat,
        "hosts": host_documents(hosts),
    }
    return View(
        document,
        lines=[headline(taken, left_out, hosts), *unseen_lines(hosts)],
        sections=[Section("", HEADERS, hold_rows(taken), "llllrrr"), unseen_section(hosts)],
        notes=[*excuse_notes(taken), BASIS],
        columns=_COLUMNS,
        flat=flat,
    )


def headline(taken: Sequence[Hold], rest: int, hosts: Sequence[HostNow]) -> str:
    """`5 cards are held without work now: gpu03:0,2 gpu05:1; 12 more holds are not shown`."""
    if not any(card.fresh for card in all_cards(hosts)):
        return "Who holds cards is not known: no host said what its cards do now."
    idle = list(
        {hold.card.uuid: hold.card for hold in taken if hold.idle_s and hold.card.state == "idle-held"}.values()
    )
    number = f"{len(idle)} card{' is' if len(idle) == 1 else 's are'}" if idle else "No card is"
    where = f": {places(idle)}" if idle else ""
    more = f"; {rest} other hold{' is' if rest == 1 else 's are'} not as asked and not shown" if rest else ""
    return f"{number} held without work now{where}{more}"


def hold_rows(holds: Sequence[Hold]) -> list[tuple[str, ...]]:
    """One row per hold, in the order given. `*` behind the idle time: excused."""
    return [
        (
            hold.user,
            hold.card.host,
            UNKNOWN if hold.card.index is None else str(hold.card.index),
            hold.holder.process if hold.holder else UNKNOWN,
            gigabytes(hold.holder.memory_mb if hold.holder else hold.card.memory_used_mb),
            _duration(hold.holder.held_s if hold.holder else None),
            _idle(hold) + (_EXCUSED if hold.excuse else ""),
        )
        for hold in holds
    ]


def excuse_notes(holds: Sequence[Hold]) -> list[str]:
    """Each reason once, with how many holds it excuses."""
    reasons: dict[str, int] = {}
    for hold in holds:
        if hold.excuse:
            reasons[hold.excuse] = reasons.get(hold.excuse, 0) + 1
    return [
        f"{_EXCUSED} excused ({number} hold{'' if number == 1 else 's'}): {shown(reason, 200)}"
        for reason, number in reasons.items()
    ]


def _idle(hold: Hold) -> str:
    """How long; a word where there is no such time."""
    if hold.card.state == "active":
        return "active"
    return "not known" if hold.idle_s is None else _duration(hold.idle_s)


def _duration(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else format_duration(round(seconds * MS_PER_SECOND))


def _document(hold: Hold) -> dict[str, Any]:
    card, holder = hold.card, hold.holder
    return {
        "user": hold.user,
        "host": card.host,
        "index": card.index,
        "uuid": card.uuid,
        "model": card.model,
        "process": holder.process if holder else None,
        "pid": holder.pid if holder else None,
        "memory_mb": holder.memory_mb if holder else card.memory_used_mb,
        "state": card.state,
        "reason": card.reason,
        "held_s": holder.held_s if holder else None,
        "idle_s": hold.idle_s,
        "excuse": hold.excuse,
    }
