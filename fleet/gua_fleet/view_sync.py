"""What `gua-fleet sync-once` says: every card this minute, and what became of measuring, storing and pushing. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gua.report.cells import UNKNOWN, gigabytes, model
from gua.text import shown
from gua_fleet.model import Document, HostResult, Outcome
from gua_fleet.present import CardNow, Holder, HostNow
from gua_fleet.view import Section, View
from gua_fleet.view_hosts import name_list, silent_section

SCHEMA = "gua.fleet-sync-once/1"
HEADERS = ("host", "card", "model", "state", "util %", "GB used", "held by")
_COLUMNS = (
    *("host", "index", "uuid", "model", "state", "reason", "util_pct", "memory_used_mb", "memory_total_mb", "users"),
)
_STATES = ("active", "idle-held", "truly-idle", "unknown")


def sync_view(
    results: Sequence[HostResult],
    hosts: Sequence[HostNow],
    document: Mapping[str, Any],
    latest: Mapping[str, Document],
) -> View:
    """Everything `gua-fleet sync-once` has to say. hosts: of the same results. latest: earlier states."""
    cards = [card for host in hosts for card in host.cards]
    return View(
        document,
        lines=[headline(results), *([states_line(cards)] if cards else [])],
        sections=[
            Section("", HEADERS, [_row(card) for card in cards], "llllrrl", host_column=0),
            silent_section(results, hosts),
        ],
        notes=[*notes(results), *latest_lines(results, latest)],
        columns=_COLUMNS,
        flat=[_flat(card) for card in cards],
    )


def has_sampled(result: HostResult) -> bool:
    """Whether it could measure, and neither storing nor pushing failed.

    Without a GPU there is nothing to measure; a paused one may not; and to have no right to store is no failure.
    """
    document = result.document
    return document is None or (
        document["status"] != "error" and not _store_failed(document) and _push(document) != "failed"
    )


def headline(results: Sequence[HostResult]) -> str:
    """`4 hosts: 2 measured, 1 could not (gpu03), 1 did not answer (gpu04); stored on 1; push: 2 not-enrolled`."""
    answered = [result for result in results if result.document is not None]
    documents = [result.document or {} for result in answered]
    measured = [result for result in answered if (result.document or {})["status"] in ("ok", "partial")]
    kinds = {
        "could not": [r for r in answered if (r.document or {})["status"] == "error"],
        "without a GPU": [r for r in results if r.outcome is Outcome.NO_GPU or _status(r) == "no-gpu"],
        "paused": [r for r in results if r.outcome is Outcome.PAUSED],
        "left out": [r for r in results if r.outcome in (Outcome.MAINTENANCE, Outcome.SKIPPED)],
        "did not answer": [r for r in results if r.failed],
    }
    parts = [f"{len(measured)} measured"]
    parts += [f"{len(some)} {what} ({name_list([r.host.name for r in some])})" for what, some in kinds.items() if some]
    stored = str(sum(document["stored"] for document in documents))
    unstored = [result.host.name for result in answered if _store_failed(result.document or {})]
    if unstored:
        stored += f", failed on {len(unstored)} ({name_list(unstored)})"
    pushes = Counter(map(_push, documents))
    pushed = ", ".join(f"{number} {shown(result)}" for result, number in pushes.most_common()) or "none"
    number = f"{len(results)} host{'' if len(results) == 1 else 's'}"
    return f"{number}: {', '.join(parts)}; stored on {stored}; push: {pushed}"


def states_line(cards: Sequence[CardNow]) -> str:
    """`24 cards: 10 active, 6 idle-held, 7 truly-idle, 1 unknown`."""
    counted = Counter(card.state for card in cards)
    parts = [f"{counted[state]} {state}" for state in _STATES if counted[state]]
    return f"{len(cards)} card{'' if len(cards) == 1 else 's'}: {', '.join(parts)}"


def notes(results: Sequence[HostResult]) -> list[str]:
    """What the table of cards cannot show: errors, samples that were not stored, pushes that failed."""
    lines: list[str] = []
    for result in results:
        document = result.document
        if document is None:
            continue
        name = shown(result.host.name)
        if document["status"] in ("ok", "partial") and not document["stored"]:
            what = "storing failed there" if _store_failed(document) else "not stored there"
            lines.append(f"{name}: {what}" + _because(document["stored_reason"]))
        if _push(document) == "failed":
            lines.append(f"{name}: push failed" + _because(document["push"].get("reason")))
        lines += [f"{name}: {error}" for error in document["errors"]]
    return lines


def latest_lines(results: Sequence[HostResult], latest: Mapping[str, Document]) -> list[str]:
    """Of each host that said nothing now, what it said last; it is in no figure above."""
    lines = []
    for result in results:
        document = latest.get(result.host.name)
        if result.document is None and document is not None:
            states = Counter(card["now"]["state"] for card in document["cards"])
            parts = ", ".join(f"{states[state]} {state}" for state in _STATES if states[state]) or "no card"
            at = document["observed_at"][:16].replace("T", " ")
            lines.append(f"{shown(result.host.name)}: not counted above; {at} UTC it had {parts}")
    return lines


def _status(result: HostResult) -> str | None:
    return None if result.document is None else str(result.document["status"])


def _store_failed(document: Mapping[str, Any]) -> bool:
    """Older agents do not tell it."""
    return bool(document.get("store_failed"))


def _because(reason: str | None) -> str:
    return f" ({shown(reason, 300)})" if reason else ""


def _push(document: Mapping[str, Any]) -> str:
    return str(document["push"]["result"]).partition(":")[0]


def _row(card: CardNow) -> tuple[str, ...]:
    return (
        card.host,
        UNKNOWN if card.index is None else str(card.index),
        model(card.model),
        f"{card.state} ({card.reason})" if card.reason else str(card.state),
        UNKNOWN if card.util_pct is None else str(card.util_pct),
        f"{gigabytes(card.memory_used_mb)} / {gigabytes(card.memory_total_mb)}",
        ", ".join(map(_holder, card.holders)) or UNKNOWN,
    )


def _holder(holder: Holder) -> str:
    amount = "" if holder.memory_mb is None else f" {gigabytes(holder.memory_mb)} GB"
    return f"{holder.user} ({holder.process}{amount})"


def _flat(card: CardNow) -> dict[str, Any]:
    names = ("host", "index", "uuid", "model", "state", "reason", "util_pct", "memory_used_mb", "memory_total_mb")
    users = " ".join(sorted({holder.user for holder in card.holders}))
    return {**{name: getattr(card, name) for name in names}, "users": users}
