"""The rows of hosts: every host of the inventory, whether it answered or not. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gua.units import MS_PER_SECOND, parse_time_ms
from gua_fleet.merge_now import last_tick_at
from gua_fleet.merge_parts import physical_cards
from gua_fleet.model import Document, HostResult, Outcome, Seen
from gua_fleet.sums import STATE_NAMES

OTHER_RULE_TEXT = "judged by another rule, so not in the sums"


def host_rows(
    results: Sequence[HostResult], twins: Mapping[str, str], apart: Collection[str], seen: Mapping[str, Seen]
) -> list[dict[str, Any]]:
    """One row per host in the order given. card_s and coverage are null where they are in no sum."""
    return [_host_row(result, twins, apart, seen.get(result.host.name)) for result in results]


def apart_row(result: HostResult) -> dict[str, Any]:
    """What a host that judged by another rule says, for itself."""
    document: Document = result.document or {}
    return {
        "host": result.host.name,
        "rules": document["rules"],
        "card_s": _four_states(document),
        "coverage": document["coverage"],
    }


def is_twin_text(name: str) -> str:
    """Why a host of the inventory has no amounts of its own though it answered."""
    return f"same agent as {name} (store_id and boot_id agree): counted there, once"


def clock_offset_s(result: HostResult) -> float | None:
    """How far the host's clock is ahead of this machine's, at least (behind: negative). None: not known.

    The answer was made at some time between asking and having it, so within that it is 0.
    """
    if result.document is None or result.answered_at_ms is None:
        return None
    made_ms, asked_ms = parse_time_ms(result.document["generated_at"]), _asked_ms(result.answered_at_ms, result)
    return (made_ms - min(max(made_ms, asked_ms), result.answered_at_ms)) / MS_PER_SECOND


def _four_states(document: Document) -> dict[str, float]:
    """The host's state map without what a newer agent may say there."""
    return {name: document["card_s"][name] for name in STATE_NAMES}


def _apart_text(result: HostResult) -> str:
    return f"{OTHER_RULE_TEXT} ({result.detail})" if result.detail else OTHER_RULE_TEXT


def _asked_ms(answered_at_ms: int, result: HostResult) -> int:
    return answered_at_ms - round(result.elapsed_s * MS_PER_SECOND)


def _host_row(
    result: HostResult, twins: Mapping[str, str], apart: Collection[str], seen: Seen | None
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": result.host.name,
        "outcome": result.outcome_text,
        "detail": result.detail,
        "cards": result.host.cards,
        "card_s": None,
        "coverage": None,
        "agent_version": None,
        "last_tick_at": None,
        "last_seen_at": seen.at if seen else None,
        "clock_offset_s": clock_offset_s(result),
        "failed": result.failed,
    }
    if result.document is None:
        known = row["cards"] is not None or seen is None or result.outcome is Outcome.NO_GPU
        return row if known else row | {"cards": seen.cards}  # type: ignore[union-attr]  # seen is None: known
    document = result.document
    row |= {
        "agent_version": document["host"]["agent_version"],
        "last_tick_at": last_tick_at(document),
        "last_seen_at": document["generated_at"],
    }
    if result.host.name in twins:
        return row | {"cards": None, "detail": is_twin_text(twins[result.host.name])}
    if result.host.name in apart:
        return row | {"cards": physical_cards(document), "detail": _apart_text(result)}
    return row | {
        "cards": physical_cards(document),
        "card_s": _four_states(document),
        "coverage": document["coverage"],
    }
