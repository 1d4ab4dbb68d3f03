"""What `gua-fleet top --json` says: the picture for programs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gua_fleet.present import CardNow, HostNow
from gua_fleet.view_hosts import host_documents

SCHEMA = "gua.fleet-top/1"


def top_document(hosts: Sequence[HostNow], *, generated_at: str) -> dict[str, Any]:
    """Every host in inventory order with its cards. generated_at: this machine's time, ISO 8601 in UTC."""
    rows = [
        {**row, "scheduler": host.scheduler, "paused": host.paused, "cards": list(map(_card, host.cards))}
        for row, host in zip(host_documents(hosts), hosts, strict=True)
    ]
    return {"schema": SCHEMA, "generated_at": generated_at, "hosts": rows}


def _card(card: CardNow) -> dict[str, Any]:
    names = ("index", "uuid", "model", "mig", "memory_total_mb", "memory_used_mb", "util_pct", "reason", "seen_s")
    return {"state": card.state_now, "was": card.state, **{name: getattr(card, name) for name in names}}
