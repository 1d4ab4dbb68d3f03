"""What the small commands show, as rows and lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.render import Cell

HOST_HEADERS = ("host", "address", "port", "user", "through", "groups", "skipped because")
FINDING_HEADERS = ("status", "check", "finding", "cure", "hosts")
CARD_HEADERS = ("host", "card", "model", "state", "util %", "memory MB", "held by")
SILENT_HEADERS = ("host", "outcome", "why")

_WORST_FIRST = {"fail": 0, "warn": 1, "skip": 2, "ok": 3}
_MOST_NAMES = 6


def host_rows(hosts: Sequence[Host]) -> list[tuple[Cell, ...]]:
    """One row per host, as understood; `-` where the inventory does not say and ssh_config will decide."""
    return [
        (
            host.name,
            host.address,
            host.port,
            host.user,
            _through(host),
            ", ".join(host.groups) or None,
            host.skip_reason or (f"maintenance: {host.maintenance}" if host.maintenance else None),
        )
        for host in hosts
    ]


def host_document(host: Host) -> dict[str, Any]:
    """One host of `gua-fleet hosts --format json`."""
    names = ("name", "address", "port", "user", "connection", "jump", "proxy_command", "identity_file")
    ours = ("become", "become_user", "scheduler", "maintenance", "cards")
    return {
        **{name: getattr(host, name) for name in (*names, *ours)},
        "gua_command": list(host.gua_command),
        "groups": list(host.groups),
        "skipped": host.skip_reason,
    }


def finding_rows(results: Sequence[HostResult], *, verbose: bool) -> list[tuple[Cell, ...]]:
    """Equal findings grouped over hosts, worst first; only what needs attention unless verbose."""
    grouped: dict[tuple[str, str, str, str | None], list[str]] = {}
    for name, check in _checks(results):
        status = str(check.get("status"))
        if verbose or status in ("fail", "warn"):
            key = (status, str(check.get("id")), str(check.get("summary")), check.get("cure"))
            grouped.setdefault(key, []).append(name)
    ordered = sorted(grouped.items(), key=lambda item: (_WORST_FIRST.get(item[0][0], 0), -len(item[1])))
    return [(*key, _names(hosts)) for key, hosts in ordered]


def doctor_headline(results: Sequence[HostResult]) -> str:
    """`3 hosts: 1 ready, 1 not ready (b), 1 did not answer (c)`."""
    ready = [r.host.name for r in results if is_ready(r)]
    not_ready = [r.host.name for r in results if r.document is not None and not is_ready(r)]
    silent = [r.host.name for r in results if r.failed]
    left_out = len(results) - len(ready) - len(not_ready) - len(silent)
    parts = [f"{len(ready)} ready"]
    parts += [f"{len(not_ready)} not ready ({_names(not_ready)})"] if not_ready else []
    parts += [f"{len(silent)} did not answer ({_names(silent)})"] if silent else []
    parts += [f"{left_out} left out"] if left_out else []
    return f"{len(results)} hosts: {', '.join(parts)}"


def is_ready(result: HostResult) -> bool:
    return result.document is not None and result.document.get("ready") is True


def has_sampled(result: HostResult) -> bool:
    """Whether `sync-once` could measure there; a host without a GPU has nothing to measure."""
    return result.document is not None and result.document.get("status") != "error"


def card_rows(results: Sequence[HostResult]) -> list[tuple[Cell, ...]]:
    """One row per card, by host in inventory order and then by index."""
    rows: list[tuple[Cell, ...]] = []
    for result in results:
        cards = _list(result.document, "cards")
        for card in sorted(cards, key=lambda card: (card.get("index") is None, card.get("index") or 0)):
            rows.append(_card_row(result.host.name, card))
    return rows


def _card_row(host: str, card: Mapping[str, Any]) -> tuple[Cell, ...]:
    now = card.get("now") or {}
    state, reason = now.get("state"), now.get("reason")
    return (
        host,
        card.get("index"),
        card.get("name"),
        f"{state} ({reason})" if reason else state,
        now.get("util_pct"),
        _memory(now.get("memory_used_mb"), card.get("memory_total_mb")),
        ", ".join(_holder(holder) for holder in _list(now, "holders")) or None,
    )


def sync_notes(results: Sequence[HostResult]) -> list[str]:
    """What the table of cards cannot show: hosts without cards, with errors, or whose sample was not stored."""
    notes: list[str] = []
    for result in results:
        document = result.document
        if document is None:
            continue
        if document.get("status") == "no-gpu":
            notes.append(f"{result.host.name}: no NVIDIA GPU")
        elif document.get("stored") is False:
            notes.append(f"{result.host.name}: not stored there ({document.get('stored_reason') or 'no reason given'})")
        notes += [f"{result.host.name}: {error}" for error in document.get("errors") or ()]
    return notes


def silent_rows(results: Sequence[HostResult]) -> list[tuple[Cell, ...]]:
    """Every host that has no document to show, with the reason."""
    return [(r.host.name, r.outcome_text, r.detail) for r in results if r.outcome is not Outcome.OK]


def _checks(results: Sequence[HostResult]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for result in results:
        for check in _list(result.document, "checks"):
            yield result.host.name, check


def _list(document: Mapping[str, Any] | None, key: str) -> list[Mapping[str, Any]]:
    """A host's list of objects; a host that sends something else there has none."""
    value = (document or {}).get(key)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _through(host: Host) -> str | None:
    if host.connection == "local":
        return "local"
    return host.jump or ("a proxy command" if host.proxy_command else None)


def _memory(used_mb: int | None, total_mb: int | None) -> str | None:
    if used_mb is None and total_mb is None:
        return None
    return f"{'-' if used_mb is None else used_mb} / {'-' if total_mb is None else total_mb}"


def _holder(holder: Mapping[str, Any]) -> str:
    memory = holder.get("memory_mb")
    amount = "" if memory is None else f" {memory} MB"
    return f"{holder.get('user')} ({holder.get('process')}{amount})"


def _names(hosts: Sequence[str]) -> str:
    """At most six names; more of them are counted."""
    shown = ", ".join(hosts[:_MOST_NAMES])
    return shown if len(hosts) <= _MOST_NAMES else f"{shown} and {len(hosts) - _MOST_NAMES} more"
