"""Rows of the report that name people: users and holds. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Optional

from gua.report.amounts import states_of
from gua.report.document import Hold, User
from gua.store.codes import STATES
from gua.store.credit import CARD, LONG_IDLE, SHARE, SHARED, USER_ENERGY, USER_ENERGY_MS, USER_SAMPLES
from gua.store.reader import HoldRow, UserRow
from gua.store.sums import WindowSums
from gua.units import to_iso


def users_of(known: Mapping[int, UserRow], sums: WindowSums, memory_mb: Mapping[int, Optional[float]]) -> list[User]:
    """Who held cards in the window, longest first. known, memory_mb: by user id."""
    cards = Counter(user for (user, _), held_ms in sums.user_cards.items() if held_ms > 0)
    by_user: defaultdict[int, dict[int, list[int]]] = defaultdict(dict)
    for (user, state), amounts in sums.users.items():
        by_user[user][state] = amounts
    rows: list[User] = [
        {**_user(known[user], states), "cards": cards[user], "held_mb": memory_mb.get(user)}
        for user, states in by_user.items()
    ]
    return sorted(rows, key=lambda row: (-row["card_s"], row["user"]))


def _user(user: UserRow, states: Mapping[int, list[int]]) -> User:
    def total(position: int) -> int:
        return sum(amounts[position] for amounts in states.values())

    by_state = states_of(states[code][CARD] if code in states else 0 for code in range(len(STATES)))
    return {
        "user": user.name,
        "uid": user.uid,
        "user_source": user.source.value,
        "card_s": total(CARD) / 1000,
        "share_s": total(SHARE) / 1000,
        "shared_card_s": total(SHARED) / 1000,
        "states": by_state,
        "idle_held_card_s": by_state["idle-held"],
        "idle_held_long_card_s": total(LONG_IDLE) / 1000,
        "energy_j": total(USER_ENERGY) / 1000 if total(USER_ENERGY_MS) else None,
        "energy_known_s": total(USER_ENERGY_MS) / 1000,
        "samples": total(USER_SAMPLES),
    }


def hold_of(hold: HoldRow, uuids: Mapping[int, str]) -> Hold:
    """One hold. uuids: by device id."""
    return {
        "user": hold.user,
        "process": hold.process,
        "pid": hold.pid,
        "card": uuids[hold.device],
        "since": to_iso(hold.since_ms),
        "until": None if hold.until_ms is None else to_iso(hold.until_ms),
        "memory_mb": hold.memory_mb,
        "states": states_of(hold.state_ms[state] for state in STATES),
        "idle_held_long_card_s": hold.long_idle_ms / 1000,
        "id": hold.id,
        "process_key": hold.process_key,
        "user_source": hold.source.value,
        "mounts": hold.mounts,
        "sm_util_pct": None if hold.sm_util_pct is None else round(hold.sm_util_pct, 1),
    }
