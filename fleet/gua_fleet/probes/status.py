"""The question of `gua-fleet status`, and the host's state in it.

An agent of before `gua status` is asked for its report over the last day instead: the field names are those of
`gua.status/1`, and what a report cannot tell is null.
"""

from __future__ import annotations

from typing import Any

from gua_fleet.merge_now import last_tick_at
from gua_fleet.merge_parts import physical_cards
from gua_fleet.model import Document, HostResult, Outcome
from gua_fleet.present import HostNow
from gua_fleet.probes.probe import Probe
from gua_fleet.probes.report import report_probe

_DAY_SUMS = ("expected_card_s", "observed_card_s", "unknown_card_s")
DAY_MS = 24 * 3_600_000


SCHEMA = "gua.status/1"
STATUS_PROBE = Probe("status", SCHEMA, ("status", "--json"))
# What argparse says of a command that it does not know; the rest of the line lists those that it does.
_UNKNOWN_COMMAND = "invalid choice: 'status'"


def is_older(result: HostResult) -> bool:
    """Whether the agent there does not know the question."""
    return result.outcome is Outcome.AGENT_ERROR and _UNKNOWN_COMMAND in (result.detail or "")


def is_status(document: Document) -> bool:
    """Whether it is the answer to STATUS_PROBE, and not a report in its place."""
    return bool(document["schema"] == SCHEMA)


def older_probe(now_ms: int) -> Probe:
    """What an older agent is asked. now_ms: this machine's time, Unix, UTC."""
    return report_probe(since_ms=now_ms - DAY_MS, until_ms=now_ms, tz="UTC")


def status_of(document: Document, host: HostNow) -> dict[str, Any]:
    """What an agent says about itself, or what a report over a day says about it.

    state: null in a report. running: by a report true while samples come, null where none do: then the daemon may be
    down, stuck or paused. enrolled, board: null, a report does not tell. last_day: card-seconds.
    """
    if is_status(document):
        return _own_words(document, host)
    coverage = document["coverage"]
    return {
        "state": None,
        "running": True if host.sampling else None,
        "sampling": host.sampling,
        "paused": host.paused,
        "last_tick_at": last_tick_at(document),
        "last_tick_age_s": host.sampled_s,
        "interval_s": host.interval_s,
        "cards": 0 if host.twin_of else physical_cards(document),
        "agent_version": document["host"]["agent_version"],
        "driver_version": document["host"]["driver_version"],
        "enrolled": None,
        "board": None,
        "last_day": {
            "expected_card_s": coverage["expected_card_s"],
            "observed_card_s": coverage["observed_card_s"],
            "unknown_card_s": document["card_s"]["unknown"],
        },
    }


def _own_words(document: Document, host: HostNow) -> dict[str, Any]:
    same = ("state", "running", "paused", "last_tick_at", "last_tick_age_s", "interval_s", "cards", "enrolled")
    return {
        **{name: document[name] for name in same},
        "board": document.get("board"),  # an agent of before does not tell
        "sampling": host.sampling,
        "agent_version": document["host"]["agent_version"],
        "driver_version": document["host"]["driver_version"],
        "last_day": document["last_day"] or dict.fromkeys(_DAY_SUMS, 0.0),
    }
