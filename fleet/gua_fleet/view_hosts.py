"""What every small command says about hosts: which were not seen now, why, and when they last were. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gua.units import MS_PER_SECOND, format_duration
from gua_fleet.free import unseen_hosts
from gua_fleet.model import HostResult, Outcome
from gua_fleet.present import HostNow
from gua_fleet.view import Section

UNSEEN_HEADERS = ("not seen", "cards", "outcome", "why", "last seen (UTC)")
_MOST_NAMES = 6
# By what its daemon does, where that was asked for
_WHY_STALE = {
    "stuck": "the daemon is there and stores no tick: look into its log",
    "stopped": "no daemon runs there",
    "starting": "the daemon has just begun",
    "elsewhere": "the daemon of another host has its database",
    "unknown": "this user may not see whether a daemon runs there",
    "paused": "paused",
}


def unseen_lines(hosts: Sequence[HostNow]) -> list[str]:
    """`2 of 9 hosts were not seen, so nothing is said of their cards: gpu04, gpu07`."""
    unseen = unseen_hosts(hosts)
    if not unseen:
        return []
    names = [host.name for host in unseen]
    return [f"Nothing is known of {len(unseen)} of {len(hosts)} hosts now: {name_list(names)}"]


def unseen_section(hosts: Sequence[HostNow]) -> Section:
    """Every host that has no place above, with the reason."""
    rows = [
        (host.name, _cards(host), _outcome(host), why_unseen(host), last_seen(host))
        for host in hosts
        if not host.known or host.stale or host.twin_of
    ]
    return Section("", UNSEEN_HEADERS, rows, host_column=0)


def silent_section(results: Sequence[HostResult], hosts: Sequence[HostNow] = ()) -> Section:
    """Every host that has no document to show, with the reason; hosts: to tell when each was last seen."""
    seen = {host.name: last_seen(host) for host in hosts}
    rows = [
        (result.host.name, result.outcome_text, result.detail, *([seen.get(result.host.name)] if hosts else []))
        for result in results
        if result.outcome is not Outcome.OK
    ]
    return Section("", ("host", "outcome", "why", *(["last seen (UTC)"] if hosts else [])), rows, host_column=0)


def why_unseen(host: HostNow) -> str | None:
    """The reason that stands beside a host without cards, in words."""
    if host.twin_of:
        return f"same agent as {host.twin_of}: counted there, once"
    if not host.stale:
        return host.detail
    reason = _WHY_STALE.get(host.daemon or "", "paused" if host.paused else "")
    first = f"{reason}; " if reason else ""
    if host.sampled_s is None:
        return f"{first}no card was ever sampled there"
    if host.sampled_s < 0:
        return f"{first}its newest sample is {_duration(-host.sampled_s)} ahead of its clock: is the clock right?"
    return f"{first}its newest sample is {_duration(host.sampled_s)} old{'' if reason else ': is the daemon running?'}"


def last_seen(host: HostNow) -> str | None:
    """`2026-03-02 08:00`, or None where it was never seen or was just now."""
    return None if host.seen is None or host.known else host.seen.at[:16].replace("T", " ")


def host_documents(hosts: Sequence[HostNow]) -> list[dict[str, Any]]:
    """Every host for programs. sampled_s: age of its newest sample by its own clock."""
    return [
        {
            "name": host.name,
            "outcome": host.outcome,
            "detail": host.detail,
            "failed": host.failed,
            "stale": host.stale,
            "sampled_s": host.sampled_s,
            "twin_of": host.twin_of,
            "last_seen_at": host.seen.at if host.seen else None,
        }
        for host in hosts
    ]


def name_list(names: Sequence[str]) -> str:
    """At most six names; more of them are counted."""
    first = ", ".join(names[:_MOST_NAMES])
    return first if len(names) <= _MOST_NAMES else f"{first} and {len(names) - _MOST_NAMES} more"


def _outcome(host: HostNow) -> str:
    if not host.stale:
        return host.outcome
    return "paused" if host.paused else "stale"


def _cards(host: HostNow) -> int | None:
    if host.stale:
        return len(host.cards) if host.count is None else host.count
    return None if host.known else host.count


def _duration(seconds: float) -> str:
    return format_duration(round(seconds * MS_PER_SECOND))
