"""What only the fleet as a whole can notice: two names of one host, one card in two places, mixed rules. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from gua.units import MS_PER_SECOND, format_duration, parse_time_ms
from gua_fleet.merge_hosts import clock_offset_s, is_twin_text
from gua_fleet.merge_rules import rule_argument
from gua_fleet.model import HostResult, Outcome

# The order of `findings`: what needs a person first.
SEVERITIES = ("fail", "warn", "info")

# A host's clock may be off by so much, beyond the time its answer took.
CLOCK_TOLERANCE_S = 30.0


def fleet_findings(
    counted: Sequence[HostResult],
    twins: Mapping[str, str],
    apart: Sequence[HostResult],
    window: Mapping[str, Any],
    tz: str,
) -> list[dict[str, Any]]:
    """Findings about the fleet, `host` null. Shape: {"id", "severity", "host", "card", "text"}."""
    answered = [result for result in counted if result.report is not None]
    return [
        *(_finding("same_agent", "warn", f"{twin}: {is_twin_text(name)}") for twin, name in sorted(twins.items())),
        *_no_card_where_some_should_be(counted),
        *_shared_cards(answered),
        *_other_rules(apart),
        *_mixed_rules(answered, {result.host.name for result in apart}),
        *_mixed_windows(answered),
        *_mixed_zones(answered, tz),
        *_wrong_clocks(answered),
        *_mixed_versions(answered),
        *_short_histories(answered, window),
        *_several_groups(counted),
    ]


def host_findings(answered: Sequence[HostResult]) -> list[dict[str, Any]]:
    """Every host's own findings with its name, in the order of the hosts."""
    return [
        {
            "id": finding["id"],
            "severity": finding["severity"],
            "host": result.host.name,
            "card": finding["card"],
            "text": finding["text"],
        }
        for result in answered
        if result.report is not None
        for finding in result.report["findings"]
    ]


def by_severity(findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The findings worst first, otherwise in the order given."""
    return sorted(findings, key=lambda finding: _rank(finding["severity"]))


def _rank(severity: str) -> int:
    """Place of a severity; words a newer agent may bring come last."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _finding(finding_id: str, severity: str, text: str, card: str | None = None) -> dict[str, Any]:
    return {"id": finding_id, "severity": severity, "host": None, "card": card, "text": text}


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _by_value(answered: Sequence[HostResult], values_of: Any) -> dict[Any, set[str]]:
    """Which hosts answered which value: {value: {host names}}."""
    hosts: dict[Any, set[str]] = defaultdict(set)
    for result in answered:
        for value in values_of(result.report):
            hosts[value].add(result.host.name)
    return hosts


def _no_card_where_some_should_be(counted: Sequence[HostResult]) -> list[dict[str, Any]]:
    """Such a host contributes nothing; nobody should have to notice that by its absence."""
    return [
        _finding(
            "cards_not_found",
            "warn",
            f"{result.host.name} finds no NVIDIA card, gua_cards says {result.host.cards}: nothing is expected of it; "
            "look at its PCI bus, or mend gua_cards",
        )
        for result in counted
        if result.outcome is Outcome.NO_GPU and result.host.cards
    ]


def _shared_cards(answered: Sequence[HostResult]) -> list[dict[str, Any]]:
    """A card that was moved is retired where it left; the same UUID in service on two hosts counts twice."""
    hosts = _by_value(
        answered, lambda document: [card["uuid"] for card in document["cards"] if card["retired_at"] is None]
    )
    return [
        _finding(
            "card_on_two_hosts",
            "warn",
            f"card {uuid} is in service on {_names(names)}: its time is counted on each; "
            "a cloned host needs a machine-id and a history of its own; a card that moved is still known where it was",
            card=uuid,
        )
        for uuid, names in sorted(hosts.items())
        if len(names) > 1
    ]


def _other_rules(apart: Sequence[HostResult]) -> list[dict[str, Any]]:
    hosts = _by_value(apart, lambda document: ["; ".join(rule_argument(rule) for rule in document["rules"])])
    return [
        _finding(
            "other_rules",
            "warn",
            f"judged by {rule}, so left out of the sums and shown apart: {_names(names)}; give its agent the fleet's "
            "rule, or a shorter window",
        )
        for rule, names in sorted(hosts.items())
    ]


def _mixed_rules(answered: Sequence[HostResult], apart: Collection[str]) -> list[dict[str, Any]]:
    """Only where every host's own rule was asked for; else those of other rules are apart."""
    used = [result for result in answered if result.host.name not in apart]
    hosts = _by_value(used, lambda document: ["; ".join(sorted(map(rule_argument, document["rules"])))])
    if len(hosts) < 2:
        return []
    rules = " | ".join(f"{_names(names)}: {rule}" for rule, names in sorted(hosts.items()))
    return [_finding("mixed_rules", "warn", f"the sums add states judged by different rules: {rules}")]


def _mixed_windows(answered: Sequence[HostResult]) -> list[dict[str, Any]]:
    hosts = _by_value(answered, lambda document: [(document["window"]["since"], document["window"]["until"])])
    if len(hosts) < 2:
        return []
    windows = "; ".join(f"{_names(names)}: {since} to {until}" for (since, until), names in sorted(hosts.items()))
    return [_finding("mixed_windows", "warn", f"the hosts answered for different windows: {windows}")]


def _mixed_zones(answered: Sequence[HostResult], tz: str) -> list[dict[str, Any]]:
    other = [result.host.name for result in answered if result.report and result.report["tz"] != tz]
    if not other:
        return []
    return [_finding("mixed_zones", "warn", f"left out of the hours of the week, not in {tz}: {_names(other)}")]


def _wrong_clocks(answered: Sequence[HostResult]) -> list[dict[str, Any]]:
    """Such a host's ticks lie elsewhere in time, and what it calls now is not now."""
    offsets = [(result.host.name, clock_offset_s(result)) for result in answered]
    return [
        _finding(
            "clock_differs",
            "warn",
            f"the clock of {name} is {format_duration(round(abs(offset) * MS_PER_SECOND))} "
            f"{'ahead of' if offset > 0 else 'behind'} this machine's: set both by NTP",
        )
        for name, offset in offsets
        if offset is not None and abs(offset) > CLOCK_TOLERANCE_S
    ]


def _mixed_versions(answered: Sequence[HostResult]) -> list[dict[str, Any]]:
    """Every version but the most common one, with the hosts that run it."""
    hosts = _by_value(answered, lambda document: [document["host"]["agent_version"]])
    common = min(hosts, key=lambda version: (-len(hosts[version]), version), default=None)
    return [
        _finding("agent_version_differs", "info", f"agent {version}, most run {common}: {_names(names)}")
        for version, names in sorted(hosts.items())
        if version != common
    ]


def _short_histories(answered: Sequence[HostResult], window: Mapping[str, Any]) -> list[dict[str, Any]]:
    begins = _by_value(answered, lambda document: [document["window"]["history_begins"]])
    late = {
        at: names
        for at, names in begins.items()
        if at is not None and parse_time_ms(at) > parse_time_ms(window["since"])
    }
    return [
        _finding("history_begins", "info", f"history of {_names(names)} begins {at}; nothing is expected before it")
        for at, names in sorted(late.items())
    ]


def _several_groups(counted: Sequence[HostResult]) -> list[dict[str, Any]]:
    several = [
        result.host.name
        for result in counted
        if sum(name not in ("all", "ungrouped") for name in result.host.groups) > 1
    ]
    if not several:
        return []
    return [_finding("host_in_groups", "info", f"in more than one group, counted in each: {_names(several)}")]
