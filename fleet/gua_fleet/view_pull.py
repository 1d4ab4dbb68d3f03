"""What `gua-fleet pull` says: for each host what came, how far its history is here, and what is odd. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gua.units import to_iso
from gua_fleet.model import HostResult, Outcome
from gua_fleet.pull import Pulled
from gua_fleet.pull_notes import Facts
from gua_fleet.show import one_line
from gua_fleet.view import Section, View

SCHEMA = "gua.fleet-pull/1"
_HEADERS = ("host", "outcome", "rows", "KB", "newest tick", "remarks")
_COLUMNS = ("host", "outcome", "rows", "chunks", "bytes", "since_rev", "rev", "newest_tick_at", "detail")


def pull_view(pulled: Pulled, *, store: str, elapsed_s: float, rollups_only: bool) -> View:
    """Everything there is to say. store: fit to be shown."""
    facts = pulled.facts
    return View(
        document=_document(pulled, store, rollups_only),
        lines=[_headline(pulled, store, elapsed_s)],
        sections=[Section("", _HEADERS, [_row(one, facts.get(one.host.name)) for one in pulled.results], "llrrll", 0)],
        notes=[f"The store: {pulled.store_error}"] if pulled.store_error else [],
        columns=_COLUMNS,
        flat=[_flat(one, facts.get(one.host.name)) for one in pulled.results],
    )


def _document(pulled: Pulled, store: str, rollups_only: bool) -> Mapping[str, Any]:
    hosts = []
    for result in pulled.results:
        facts = pulled.facts.get(result.host.name)
        told = facts.document() if facts is not None and facts.store_id is not None else None
        hosts.append(
            {"name": result.host.name, "outcome": result.outcome_text, "detail": result.detail, "pulled": told}
        )
    return {"schema": SCHEMA, "store": store, "rollups_only": rollups_only, "hosts": hosts}


def _headline(pulled: Pulled, store: str, elapsed_s: float) -> str:
    done = sum(result.outcome is Outcome.OK for result in pulled.results)
    failed = sum(result.failed for result in pulled.results)
    rows = sum(facts.rows for facts in pulled.facts.values())
    megabytes = sum(facts.bytes for facts in pulled.facts.values()) / 1e6
    total = len(pulled.results)
    trouble = f", {failed} failed" if failed else ""
    return (
        f"{done} of {total} host{'' if total == 1 else 's'} pulled{trouble}: {rows:,} rows, {megabytes:.1f} MB "
        f"in {elapsed_s:.0f} s, into {store}"
    )


def _row(result: HostResult, facts: Facts | None) -> tuple[str, ...]:
    came = facts if facts is not None and facts.store_id is not None else None
    newest = None if came is None else came.newest_tick_ms
    return (
        one_line(result.host.name),
        result.outcome_text,
        "" if came is None else f"{came.rows:,}",
        "" if came is None else f"{came.bytes / 1000:,.0f}",
        "" if newest is None else to_iso(newest)[:16] + "Z",
        one_line(result.detail or "", width=400),
    )


def _flat(result: HostResult, facts: Facts | None) -> dict[str, Any]:
    told = facts.document() if facts is not None and facts.store_id is not None else {}
    about = {"host": result.host.name, "outcome": result.outcome_text, "detail": result.detail}
    return {**dict.fromkeys(_COLUMNS), **{name: told.get(name) for name in _COLUMNS}, **about}
