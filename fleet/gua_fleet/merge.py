"""Merges the answers of many hosts into one `gua.fleet-report/1`. Pure; adds sums, never averages.

results -> twins counted once -> one FleetSums per host -> their sum -> document
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gua.units import MS_PER_SECOND, parse_time_ms, to_iso
from gua_fleet.merge_findings import by_severity, fleet_findings, host_findings, is_twin_text
from gua_fleet.model import Document, HostResult, Outcome
from gua_fleet.sums import (
    TICK_STATUSES,
    CardSums,
    FleetSums,
    UserSums,
    add_all,
    from_micro,
    model_name,
    physical_cards,
    qualified_user,
    states_of,
    sums_of_document,
    sums_of_silence,
)

SCHEMA = "gua.fleet-report/1"

# A card is free only if it was seen within this many of its host's intervals.
FRESH_INTERVALS = 3

# Ansible's own groups: every host is in the first, so their rows would only repeat the headline.
_IMPLIED_GROUPS = ("all", "ungrouped")


def merge_reports(
    results: Sequence[HostResult], *, since_ms: int, until_ms: int, tz: str, generated_at_ms: int
) -> Document:
    """The fleet's document from one result per host of the inventory, hosts in the order given.

    since_ms, until_ms, tz: what every host was asked, absolute. Where the answers agree on a wider window (slot
    edges), that one is said. A host without an answer has null amounts; its known cards count as expected and
    unobserved. Two names of one agent (store_id and boot_id agree) count once, under the name that sorts first.
    """
    twins = find_twins(results)
    counted = [result for result in results if result.host.name not in twins]
    window = _window(counted, since_ms, until_ms)
    window_s = _seconds_between(window["since"], window["until"])
    sums = add_all(sums_of_result(result, window_s=window_s, tz=tz) for result in counted)
    answered = [result for result in counted if result.document is not None]
    idle = [row for result in answered for row in _idle_now(result)]
    return {
        "schema": SCHEMA,
        "generated_at": to_iso(generated_at_ms),
        "window": window,
        "rules": _distinct(rule for result in answered for rule in _document(result)["rules"]),
        "intervals_s": sorted({interval for result in answered for interval in _document(result)["intervals_s"]}),
        "coverage": _coverage(sums),
        "card_s": states_of(sums.total.states),
        "samples": sums.samples,
        "cards": sums.total.cards,
        "hosts": [_host_row(result, twins) for result in results],
        "models": _models(sums),
        "users": [_user_row(name, user) for name, user in sorted(sums.users.items())],
        "groups": _groups(sums),
        "free": [row for row in idle if row["scheduler"] is None],
        "scheduler_idle": [row for row in idle if row["scheduler"] is not None],
        "tz": tz,
        "hours_of_week": _hours(sums),
        "holds": [hold for result in answered for hold in _holds(result)],
        "findings": by_severity(fleet_findings(counted, twins, window, tz) + host_findings(answered)),
    }


def find_twins(results: Sequence[HostResult]) -> dict[str, str]:
    """Inventory names that are another name of an agent already counted: {twin: the name it is counted under}.

    Cloned disk images share the store_id and one machine serves several stores, so both ids must agree. So must the
    cards: cloned containers of one machine share both ids, and no host may make another's cards disappear.
    """
    first: dict[tuple[str, str, frozenset[str]], str] = {}
    twins: dict[str, str] = {}
    for result in sorted(results, key=lambda result: result.host.name):
        if result.document is not None:
            host = result.document["host"]
            cards = frozenset(card["uuid"] for card in result.document["cards"])
            name = first.setdefault((host["store_id"], host["boot_id"], cards), result.host.name)
            if name != result.host.name:
                twins[result.host.name] = name
    return twins


def sums_of_result(result: HostResult, *, window_s: float, tz: str) -> FleetSums:
    """One host's contribution. A host that says it has no GPU contributes nothing, whatever the inventory says."""
    if result.document is not None:
        return sums_of_document(result.host, result.document, zone_fits=result.document["tz"] == tz)
    if result.outcome is Outcome.NO_GPU:
        return sums_of_silence(result.host, cards=0, window_s=window_s)
    return sums_of_silence(result.host, cards=result.host.cards or 0, window_s=window_s)


def _document(result: HostResult) -> Document:
    return result.document or {}


def _distinct(values: Any) -> list[Any]:
    """Distinct JSON objects, in an order that does not depend on the hosts' order."""
    return [json.loads(text) for text in sorted({json.dumps(value, sort_keys=True) for value in values})]


def _window(results: Sequence[HostResult], since_ms: int, until_ms: int) -> dict[str, Any]:
    windows = [result.document["window"] for result in results if result.document is not None]
    spans = {(window["since"], window["until"]) for window in windows}
    since, until = spans.pop() if len(spans) == 1 else (to_iso(since_ms), to_iso(until_ms))
    begins = [window["history_begins"] for window in windows if window["history_begins"] is not None]
    return {"since": since, "until": until, "history_begins": min(begins, key=parse_time_ms, default=None)}


def _seconds_between(since: str, until: str) -> float:
    return (parse_time_ms(until) - parse_time_ms(since)) / MS_PER_SECOND


def _coverage(sums: FleetSums) -> dict[str, Any]:
    return {
        "expected_card_s": from_micro(sums.total.expected),
        "observed_card_s": from_micro(sums.observed),
        "unobserved_card_s": from_micro(sums.unobserved),
        "unknown_by_reason": {reason: from_micro(amount) for reason, amount in sorted(sums.unknown_by_reason.items())},
        "ticks": {status: sums.ticks.get(status, 0) for status in TICK_STATUSES},
    }


def _host_row(result: HostResult, twins: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": result.host.name,
        "outcome": result.outcome_text,
        "detail": result.detail,
        "cards": result.host.cards,
        "card_s": None,
        "coverage": None,
        "agent_version": None,
        "last_tick_at": None,
        "failed": result.failed,
    }
    if result.document is None:
        return row
    row |= {"agent_version": result.document["host"]["agent_version"], "last_tick_at": _last_tick_at(result.document)}
    if result.host.name in twins:
        return row | {"cards": None, "detail": is_twin_text(twins[result.host.name])}
    return row | {
        "cards": physical_cards(result.document),
        "card_s": result.document["card_s"],
        "coverage": result.document["coverage"],
    }


def _last_tick_at(document: Document) -> str | None:
    return max((card["now"]["at"] for card in document["cards"] if card["now"]), key=parse_time_ms, default=None)


def _card_row(name: str, cards: CardSums) -> dict[str, Any]:
    return {
        "name": name,
        "cards": cards.cards,
        "card_s": states_of(cards.states),
        "expected_card_s": from_micro(cards.expected),
    }


def _models(sums: FleetSums) -> list[dict[str, Any]]:
    return [_card_row(name, cards) | {"mig": mig} for (name, mig), cards in sorted(sums.models.items())]


def _groups(sums: FleetSums) -> list[dict[str, Any]]:
    named = [name for name in sorted(sums.groups) if name not in _IMPLIED_GROUPS]
    return [_card_row(name, sums.groups[name]) | {"hosts": sums.group_hosts[name]} for name in named or sums.groups]


def _user_row(name: str, user: UserSums) -> dict[str, Any]:
    """uid is null where hosts disagree on the number; user_source joins the rules that named the user."""
    return {
        "user": name,
        "uid": next(iter(user.uids)) if len(user.uids) == 1 else None,
        "user_source": "+".join(sorted(user.sources)),
        "card_s": from_micro(user.card),
        "share_s": from_micro(user.share),
        "shared_card_s": from_micro(user.shared_card),
        "states": states_of(user.states),
        "idle_held_card_s": from_micro(user.idle_held),
        "idle_held_long_card_s": from_micro(user.idle_held_long),
        "energy_j": None if user.energy is None else from_micro(user.energy),
        "samples": user.samples,
        "hosts": sorted(user.hosts),
    }


def _hours(sums: FleetSums) -> list[dict[str, Any]]:
    return [
        {"weekday": weekday, "hour": hour, "card_s": states_of(states)}
        for (weekday, hour), states in sorted(sums.hours.items())
    ]


def _holds(result: HostResult) -> list[dict[str, Any]]:
    return [
        hold | {"host": result.host.name, "user": qualified_user(hold["user"], result.host.name)}
        for hold in _document(result)["holds"]
    ]


def _idle_now(result: HostResult) -> list[dict[str, Any]]:
    """Cards of one host that are truly idle now, by a tick that is still fresh on that host's own clock."""
    document = _document(result)
    scheduler = result.host.scheduler or document["host"]["scheduler"]
    return [
        {
            "host": result.host.name,
            "index": card["index"],
            "uuid": card["uuid"],
            "name": model_name(card),
            "memory_total_mb": card["memory_total_mb"],
            "since": card["now"]["since"],
            "scheduler": scheduler,
        }
        for card in document["cards"]
        if card["retired_at"] is None and card["now"] and _is_idle(card["now"], document)
    ]


def _is_idle(now: Mapping[str, Any], document: Document) -> bool:
    age_s = _seconds_between(now["at"], document["generated_at"])
    fresh_s = FRESH_INTERVALS * max(document["intervals_s"], default=0.0)
    # a tick from the future was stamped before the clock was set back, nobody knows when
    return bool(now["state"] == "truly-idle" and abs(age_s) <= fresh_s)
