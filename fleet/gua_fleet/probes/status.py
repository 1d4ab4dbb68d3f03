"""The question of `gua-fleet status`, and the host's state in it.

Agents do not answer `gua status --json` yet, so it is made from their report over the last day: the field names are
those of `gua.status/1`, and what a report cannot tell is null.
"""

from __future__ import annotations

from typing import Any

from gua_fleet.merge_now import last_tick_at
from gua_fleet.model import Document
from gua_fleet.present import HostNow
from gua_fleet.probes.probe import Probe
from gua_fleet.probes.report import report_probe

DAY_MS = 24 * 3_600_000


def status_probe(now_ms: int) -> Probe:
    """now_ms: this machine's time, Unix, UTC."""
    return report_probe(since_ms=now_ms - DAY_MS, until_ms=now_ms, tz="UTC")


def is_sampling(host: HostNow) -> bool:
    """Whether any card's newest sample is fresh, so that something samples there."""
    return any(card.fresh for card in host.cards)


def status_of(document: Document, host: HostNow) -> dict[str, Any]:
    """What a report over a day says about the agent.

    running: true while samples come, null where none do: then the daemon may be down, stuck or paused. enrolled: null,
    a report does not tell. last_day: card-seconds.
    """
    coverage = document["coverage"]
    return {
        "running": True if is_sampling(host) else None,
        "sampling": is_sampling(host),
        "paused": host.paused,
        "last_tick_at": last_tick_at(document),
        "last_tick_age_s": host.sampled_s,
        "interval_s": host.interval_s,
        "cards": len(host.cards),
        "agent_version": document["host"]["agent_version"],
        "driver_version": document["host"]["driver_version"],
        "enrolled": None,
        "last_day": {
            "expected_card_s": coverage["expected_card_s"],
            "observed_card_s": coverage["observed_card_s"],
            "unknown_card_s": document["card_s"]["unknown"],
        },
    }
