"""Small hand-written `gua.report/1` documents, in numbers that can be checked in the head."""

from __future__ import annotations

from typing import Any, Optional

RULE = {"active_util_pct": 10, "held_mb": 100, "unattributed_mb": 500, "unattributed_v1_mb": 1500, "long_idle_s": 1800}
SINCE, UNTIL, NOW = "2026-03-02T08:00:00Z", "2026-03-02T12:00:00Z", "2026-03-02T12:00:10Z"
SINCE_MS, UNTIL_MS, NOW_MS = 1772438400000, 1772452800000, 1772452810000
WINDOW_S = 4 * 3600.0


def states(active: float = 0, held: float = 0, idle: float = 0, unknown: float = 0) -> dict[str, float]:
    return {"active": active, "idle-held": held, "truly-idle": idle, "unknown": unknown}


def add_states(parts: list[dict[str, float]]) -> dict[str, float]:
    return {key: sum(part[key] for part in parts) for key in states()}


def now(state: str = "truly-idle", at: str = "2026-03-02T11:59:50Z", **fields: Any) -> dict[str, Any]:
    base = {"at": at, "state": state, "reason": None, "util_pct": 0, "memory_used_mb": 3, "holders": []}
    return {**base, "since": "2026-03-02T11:00:00Z", **fields}


def card(
    uuid: str, spent: dict[str, float], *, name: str = "NVIDIA H100 80GB HBM3", index: int = 0, **fields: Any
) -> dict[str, Any]:
    base = {
        "uuid": uuid,
        "index": index,
        "name": name,
        "memory_total_mb": 81559,
        "mig": None,
        "retired_at": None,
        "card_s": spent,
        "samples": 480,
        "energy_j": None,
        "energy_known_s": 0.0,
        "expected_card_s": WINDOW_S,
        "unobserved_card_s": WINDOW_S - sum(spent.values()),
        "now": now(),
    }
    return {**base, **fields}


def user(name: str, spent: dict[str, float], *, share_s: Optional[float] = None, **fields: Any) -> dict[str, Any]:
    card_s = sum(spent.values())
    base = {
        "user": name,
        "uid": 1001,
        "user_source": "owner",
        "card_s": card_s,
        "share_s": card_s if share_s is None else share_s,
        "shared_card_s": 0.0,
        "states": spent,
        "idle_held_card_s": spent["idle-held"],
        "idle_held_long_card_s": 0.0,
        "energy_j": None,
        "energy_known_s": 0.0,
        "samples": round(card_s / 30),
    }
    return {**base, **fields}


def report(
    cards: list[dict[str, Any]], users: Optional[list[dict[str, Any]]] = None, *, store_id: str = "s1", **fields: Any
) -> dict[str, Any]:
    """A report whose coverage and sums follow from its cards."""
    spent = add_states([item["card_s"] for item in cards])
    base = {
        "schema": "gua.report/1",
        "generated_at": NOW,
        "host": {
            "hostname": "box",
            "store_id": store_id,
            "boot_id": "b1",
            "machine_id": "m1",
            "agent_version": "0.1.0",
            "driver_version": "560.35.03",
            "scheduler": None,
        },
        "window": {"since": SINCE, "until": UNTIL, "history_begins": None},
        "rules": [RULE],
        "intervals_s": [30.0],
        "coverage": {
            "expected_card_s": sum(item["expected_card_s"] for item in cards),
            "observed_card_s": sum(spent.values()),
            "unobserved_card_s": sum(item["unobserved_card_s"] for item in cards),
            "unknown_by_reason": {"card_lost": spent["unknown"]} if spent["unknown"] else {},
            "ticks": {"ok": 480, "partial": 0, "error": 0, "unresponsive": 0},
        },
        "card_s": spent,
        "samples": sum(item["samples"] for item in cards),
        "cards": cards,
        "users": users or [],
        "tz": "Etc/UTC",
        "hours_of_week": [],
        "holds": [],
        "findings": [],
    }
    return {**base, **fields}
