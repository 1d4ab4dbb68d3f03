"""Metrics of a host from its report on today and its status. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from gua.metrics import names
from gua.metrics.text import Sample
from gua.model import ProcessType, State, TickStatus
from gua.report.document import Card, Now, Report
from gua.report.wording import is_stale
from gua.text import shown
from gua.units import BYTES_PER_MB, MS_PER_SECOND, parse_time_ms

# Per card: its power in watts and its temperature in degrees Celsius, each None where unknown.
Warmth = Mapping[str, tuple[Optional[float], Optional[int]]]


def build_metrics(report: Report, status: Mapping[str, Any], warmth: Warmth, *, per_user: bool) -> Iterator[Sample]:
    """Every sample. What is not known is absent, and so is what a card does now when its newest tick is old.

    report: on today. status: `gua.status/1`. warmth: by UUID. per_user: with people's names.
    """
    yield from _of_daemon(report, status)
    cards = [card for card in report["cards"] if card["retired_at"] is None]
    yield names.CARDS, (), len(cards)
    for card in cards:
        yield from _of_card(card)
        now = card["now"]
        if now is not None and not is_stale(report, now["at"]):
            yield from _of_now(card, now, warmth)
    yield from _of_today(report)
    if per_user:
        yield from _of_users(report, cards)


def _of_daemon(report: Report, status: Mapping[str, Any]) -> Iterator[Sample]:
    yield names.BUILD, (report["host"]["agent_version"],), 1
    yield names.RUNNING, (), int(status["running"])
    yield names.PAUSED, (), int(report["host"].get("paused", False))
    if status["interval_s"] is not None:
        yield names.INTERVAL, (), status["interval_s"]
    if status["last_tick_at"] is not None:
        yield names.TICK_AT, (), _seconds(status["last_tick_at"])
        yield names.TICK_AGE, (), status["last_tick_age_s"]
        for one in TickStatus:
            yield names.TICK_STATUS, (one.value,), int(one.value == status["last_tick_status"])
    board = status["board"] or {}
    for metric, at in (
        (names.BOARD_ACCEPTED_AT, board.get("last_accepted_at")),
        (names.BOARD_FAILING, board.get("failing_since")),
    ):
        if at is not None:
            yield metric, (), _seconds(at)


def _of_card(card: Card) -> Iterator[Sample]:
    uuid, mig = card["uuid"], card["mig"]
    index = "" if card["index"] is None else str(card["index"])
    where = (shown(mig["profile"]), mig["parent_uuid"]) if mig else ("", "")
    yield names.CARD, (uuid, index, shown(card["name"] or ""), *where), 1
    if card["memory_total_mb"] is not None:
        yield names.MEMORY_TOTAL, (uuid,), card["memory_total_mb"] * BYTES_PER_MB


def _of_now(card: Card, now: Now, warmth: Warmth) -> Iterator[Sample]:
    uuid = card["uuid"]
    for state in State:
        yield names.STATE, (uuid, state.value), int(state.value == now["state"])
    if now["reason"] is not None:
        yield names.REASON, (uuid, now["reason"]), 1
    yield names.STATE_SINCE, (uuid,), _seconds(now["since"])
    if now["util_pct"] is not None:
        yield names.UTILIZATION, (uuid,), now["util_pct"] / 100
    if now["memory_used_mb"] is not None:
        yield names.MEMORY_USED, (uuid,), now["memory_used_mb"] * BYTES_PER_MB
    power_w, temperature_c = warmth.get(uuid, (None, None))
    if power_w is not None:
        yield names.POWER, (uuid,), power_w
    if temperature_c is not None:
        yield names.TEMPERATURE, (uuid,), temperature_c
    if now["reason"] is None:  # who holds a card that could not be read is not known either
        yield names.HOLDERS, (uuid,), len(_holders(now))


def _holders(now: Now) -> set[str]:
    return {one["user"] for one in now["holders"] if one["type"] != ProcessType.GRAPHICS.value}


def _of_today(report: Report) -> Iterator[Sample]:
    yield names.TODAY_SINCE, (), _seconds(report["window"]["since"])
    for card in report["cards"]:
        uuid, energy_j = card["uuid"], card["energy_j"]
        for state, seconds in _by_state(card["card_s"]):
            yield names.TODAY_STATE, (uuid, state), seconds
        yield names.TODAY_UNOBSERVED, (uuid,), card["unobserved_card_s"]
        for state, joules in _by_state(energy_j) if energy_j is not None else ():
            yield names.TODAY_ENERGY, (uuid, state), joules
    for status in TickStatus:
        ticks: Mapping[str, Any] = report["coverage"]["ticks"]
        yield names.TODAY_TICKS, (status.value,), ticks[status.value]


def _by_state(amounts: Any) -> Iterator[tuple[str, float]]:
    return ((state.value, amounts[state.value]) for state in State)


def _of_users(report: Report, cards: list[Card]) -> Iterator[Sample]:
    held: Counter[tuple[str, str]] = Counter()
    for card in cards:
        now = card["now"]
        if now is not None and not is_stale(report, now["at"]):
            held.update((_name(user), now["state"]) for user in _holders(now))
    for (user, state), number in sorted(held.items()):
        yield names.USER_CARDS, (user, state), number
    sums: dict[str, list[float]] = {}
    for one in report["users"]:
        amounts = one["card_s"], one["share_s"], one["idle_held_card_s"]
        # Two accounts of one name are one label
        sums[_name(one["user"])] = [a + b for a, b in zip(sums.get(_name(one["user"]), (0.0, 0.0, 0.0)), amounts)]
    for user, (card_s, share_s, idle_held_s) in sums.items():
        yield names.USER_TODAY, (user,), card_s
        yield names.USER_SHARE, (user,), share_s
        yield names.USER_IDLE, (user,), idle_held_s


def _name(user: str) -> str:
    return shown(user, 256)


def _seconds(time: str) -> float:
    return parse_time_ms(time) / MS_PER_SECOND
