"""Merges the answers of many hosts into one `gua.fleet-report/1`. Pure; adds sums, never averages.

results -> twins counted once -> other rules apart -> one FleetSums per host -> their sum -> document
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gua.units import MS_PER_SECOND, parse_time_ms, to_iso
from gua_fleet.merge_findings import by_severity, fleet_findings, host_findings
from gua_fleet.merge_hosts import apart_row, host_rows
from gua_fleet.merge_now import idle_now, not_measurable_now, stale_now
from gua_fleet.merge_parts import sums_of_document, sums_of_silence, sums_unused
from gua_fleet.merge_people import NO_MAP, Excuse, UserMap, fleet_holds
from gua_fleet.merge_rules import FleetRules, Rule, default_rules, fleet_rules, other_rules
from gua_fleet.model import Document, HostResult, Outcome, Seen
from gua_fleet.sums import TICK_STATUSES, CardSums, FleetSums, UserSums, add_all, from_micro, states_of

SCHEMA = "gua.fleet-report/1"

# Ansible's own groups: every host is in the first, so their rows would only repeat the headline.
_IMPLIED_GROUPS = ("all", "ungrouped")


@dataclass(frozen=True)
class Known:
    """What the controller knows besides the answers.

    people, excuses: of gua-fleet.yml. rule: the one that all states must be judged by; None: the most common one.
    own_rules: every host by its own, whatever that makes of the sums. seen: what hosts said when they last answered,
    by name.
    """

    people: UserMap = NO_MAP
    excuses: Sequence[Excuse] = ()
    rule: Rule | None = None
    own_rules: bool = False
    seen: Mapping[str, Seen] = field(default_factory=dict)


@dataclass(frozen=True)
class _Fleet:
    """Every result of the inventory, sorted out. twins: {name: the name it is counted under}.

    counted: all but twins. used: answered, and judged by the fleet's rules. apart: answered by others.
    """

    results: Sequence[HostResult]
    twins: Mapping[str, str]
    counted: Sequence[HostResult]
    used: Sequence[HostResult]
    apart: Sequence[HostResult]
    rules: FleetRules


def merge_reports(
    results: Sequence[HostResult],
    *,
    since_ms: int,
    until_ms: int,
    tz: str,
    generated_at_ms: int,
    known: Known | None = None,
) -> Document:
    """The fleet's document from one result per host of the inventory, hosts in the order given.

    since_ms, until_ms, tz: what every host was asked, absolute. Where the answers agree on a wider window (slot
    edges), that one is said. A host without an answer has null amounts; its known cards count as expected and
    unobserved, and so do those of a host that judged by another rule. Where the store has the history of a host that
    did not answer, that counts, and the host's row says so and how old it is. Two names of one agent (store_id and
    boot_id agree) count once, under the name that sorts first.
    """
    known = known or Known()
    fleet = _sorted_out(results, known)
    window = _window(fleet.counted, since_ms, until_ms)
    sums = _sums(fleet, known, window, tz)
    idle = [row for result in fleet.used for row in idle_now(result)]
    answered = [*fleet.used, *fleet.apart]
    findings = fleet_findings(fleet.counted, fleet.twins, fleet.apart, window, tz)
    return {
        "schema": SCHEMA,
        "generated_at": to_iso(generated_at_ms),
        "window": window,
        "rules": _distinct(rule for result in fleet.used for rule in default_rules(_document(result))),
        "model_rules": _model_rules(fleet, known),
        "intervals_s": sorted({interval for result in answered for interval in _document(result)["intervals_s"]}),
        "coverage": _coverage(sums),
        "card_s": states_of(sums.total.states),
        "held_unmeasured_s": from_micro(sums.total.unmeasured),
        "samples": sums.samples,
        "cards": sums.total.cards,
        "sliced_cards": sums.total.sliced,
        "hosts": host_rows(
            results, fleet.twins, {result.host.name for result in fleet.apart}, known.seen, generated_at_ms
        ),
        "apart": [apart_row(result) for result in fleet.apart],
        "models": _models(sums),
        "users": [_user_row(name, user) for name, user in sorted(sums.users.items())],
        "groups": _groups(sums),
        "free": [row for row in idle if row["scheduler"] is None],
        "scheduler_idle": [row for row in idle if row["scheduler"] is not None],
        "stale": [row for result in fleet.used for row in stale_now(result)],
        "not_measurable": [row for result in fleet.used for row in not_measurable_now(result, known.people)],
        "names": True,
        "tz": tz,
        "hours_of_week": _hours(sums),
        "holds": [
            hold for result in fleet.used for hold in fleet_holds(result, known.people, known.excuses, generated_at_ms)
        ],
        "findings": by_severity(findings + host_findings(answered)),
    }


def find_twins(results: Sequence[HostResult]) -> dict[str, str]:
    """Inventory names that are another name of an agent already counted: {twin: the name it is counted under}.

    Cloned disk images share the store_id and one machine serves several stores, so both ids must agree. So must the
    cards: cloned containers of one machine share both ids, and no host may make another's cards disappear. What a host
    answers goes before what the store has of another name of it.
    """
    first: dict[tuple[str, str, frozenset[str]], str] = {}
    twins: dict[str, str] = {}
    for result in sorted(results, key=lambda result: (result.document is None, result.host.name)):
        if result.report is not None:
            host = result.report["host"]
            cards = frozenset(uuids_of(result.report))
            name = first.setdefault((host["store_id"], host["boot_id"], cards), result.host.name)
            if name != result.host.name:
                twins[result.host.name] = name
    return twins


def uuids_of(document: Document) -> Iterator[str]:
    """The cards of a report, an observation or a status."""
    if "card_uuids" in document:
        yield from document["card_uuids"]
    else:
        yield from (card["uuid"] for card in document["cards"])


def sums_of_result(
    result: HostResult, *, window_s: float, tz: str, people: UserMap = NO_MAP, seen: Seen | None = None
) -> FleetSums:
    """One host's contribution. A host that says it has no GPU contributes nothing, whatever else is known of it."""
    document = result.report
    if document is not None:
        return sums_of_document(result.host, document, zone_fits=document["tz"] == tz, people=people)
    if result.outcome is Outcome.NO_GPU:
        return sums_of_silence(result.host, cards=0, window_s=window_s)
    cards = result.host.cards if result.host.cards is not None else seen.cards if seen else 0
    return sums_of_silence(result.host, cards=cards, window_s=window_s, models=seen.models if seen else None)


def _sorted_out(results: Sequence[HostResult], known: Known) -> _Fleet:
    twins = find_twins(results)
    counted = [result for result in results if result.host.name not in twins]
    rules = fleet_rules(counted, known.rule)
    apart = [] if known.own_rules else other_rules(counted, rules)
    left_out = {result.host.name for result in apart}
    used = [result for result in counted if result.report is not None and result.host.name not in left_out]
    return _Fleet(results, twins, counted, used, apart, rules)


def _sums(fleet: _Fleet, known: Known, window: Mapping[str, Any], tz: str) -> FleetSums:
    window_s = (parse_time_ms(window["until"]) - parse_time_ms(window["since"])) / MS_PER_SECOND
    left_out = {result.host.name for result in fleet.apart}
    return add_all(
        sums_unused(result.host, _document(result))
        if result.host.name in left_out
        else sums_of_result(
            result, window_s=window_s, tz=tz, people=known.people, seen=known.seen.get(result.host.name)
        )
        for result in fleet.counted
    )


def _document(result: HostResult) -> Document:
    return result.report or {}


def _distinct(values: Any) -> list[Any]:
    """Distinct JSON objects, in an order that does not depend on the hosts' order."""
    return [json.loads(text) for text in sorted({json.dumps(value, sort_keys=True) for value in values})]


def _model_rules(fleet: _Fleet, known: Known) -> list[dict[str, Any]]:
    """Card models that are judged by a rule of their own. Where every host's own rule was asked for, each of them."""
    if not known.own_rules:
        return [{"model": name, "rule": rule} for name, rule in sorted(fleet.rules.models.items())]
    cards = (card for result in fleet.used for card in _document(result)["cards"] if card.get("own_rule"))
    return _distinct({"model": card["name"], "rule": card["own_rule"]} for card in cards)


def _window(results: Sequence[HostResult], since_ms: int, until_ms: int) -> dict[str, Any]:
    windows = [result.report["window"] for result in results if result.report is not None]
    spans = {(window["since"], window["until"]) for window in windows}
    since, until = spans.pop() if len(spans) == 1 else (to_iso(since_ms), to_iso(until_ms))
    begins = [window["history_begins"] for window in windows if window["history_begins"] is not None]
    return {"since": since, "until": until, "history_begins": min(begins, key=parse_time_ms, default=None)}


def _coverage(sums: FleetSums) -> dict[str, Any]:
    return {
        "expected_card_s": from_micro(sums.total.expected),
        "observed_card_s": from_micro(sums.observed),
        "unobserved_card_s": from_micro(sums.unobserved),
        "unknown_by_reason": {reason: from_micro(amount) for reason, amount in sorted(sums.unknown_by_reason.items())},
        "ticks": {status: sums.ticks.get(status, 0) for status in TICK_STATUSES},
    }


def _card_row(name: str, cards: CardSums) -> dict[str, Any]:
    return {
        "name": name,
        "cards": cards.cards,
        "sliced_cards": cards.sliced,
        "card_s": states_of(cards.states),
        "expected_card_s": from_micro(cards.expected),
        "energy_j": states_of(cards.energy) if cards.energy_known else None,
        "energy_known_s": from_micro(cards.energy_known),
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
        "energy_known_s": from_micro(user.energy_known),
        "samples": user.samples,
        "hosts": sorted(user.hosts),
    }


def _hours(sums: FleetSums) -> list[dict[str, Any]]:
    return [
        {"weekday": weekday, "hour": hour, "card_s": states_of(states)}
        for (weekday, hour), states in sorted(sums.hours.items())
    ]
