"""The rows of hosts: every host of the inventory, whether it answered or not. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gua.units import MS_PER_SECOND, parse_time_ms, to_iso
from gua_fleet.merge_now import last_tick_at
from gua_fleet.merge_parts import physical_cards
from gua_fleet.model import Document, HostResult, Outcome, Seen, Stored
from gua_fleet.sums import STATE_NAMES

OTHER_RULE_TEXT = "judged by another rule, so not in the sums"


def host_rows(
    results: Sequence[HostResult],
    twins: Mapping[str, str],
    apart: Collection[str],
    seen: Mapping[str, Seen],
    now_ms: int,
) -> list[dict[str, Any]]:
    """One row per host in the order given. card_s and coverage are null where they are in no sum.

    now_ms: of the report, from which the age of what the store has is counted.
    """
    return [_host_row(result, twins, apart, seen.get(result.host.name), now_ms) for result in results]


def _from_store(stored: Stored | None, now_ms: int) -> dict[str, Any] | None:
    """How old it is what is shown of a host that was not there to be asked."""
    if stored is None:
        return None
    newest_ms = stored.newest_tick_ms
    return {
        "pulled_at": to_iso(stored.pulled_at_ms),
        "newest_tick_at": None if newest_ms is None else to_iso(newest_ms),
        "age_s": max(0, now_ms - stored.pulled_at_ms) / MS_PER_SECOND,
    }


def apart_row(result: HostResult) -> dict[str, Any]:
    """What a host that judged by another rule says, for itself."""
    document: Document = result.report or {}
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
    result: HostResult, twins: Mapping[str, str], apart: Collection[str], seen: Seen | None, now_ms: int
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
        "from_store": None,
    }
    if result.report is None:
        known = row["cards"] is not None or seen is None or result.outcome is Outcome.NO_GPU
        return row if known else row | {"cards": seen.cards}  # type: ignore[union-attr]  # seen is None: known
    document, told = result.report, _from_store(result.stored if result.document is None else None, now_ms)
    row |= {
        "agent_version": document["host"]["agent_version"],
        "last_tick_at": last_tick_at(document) if told is None else told["newest_tick_at"],
        "from_store": told,
    }
    if told is None:
        row["last_seen_at"] = document["generated_at"]
    if result.host.name in twins:
        detail = is_twin_text(twins[result.host.name])
        return row | {"cards": None, "detail": f"{result.detail}; {detail}" if result.failed else detail}
    if result.host.name in apart:
        return row | {"cards": physical_cards(document), "detail": _apart_text(result)}
    return row | {
        "cards": physical_cards(document),
        "card_s": _four_states(document),
        "coverage": document["coverage"],
    }
