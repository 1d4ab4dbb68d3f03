"""Any history, any window: what the report says is what the ticks say, second by second."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gua.model import DEFAULT_RULE, CardTick, ProcessType, Reason, Tick, TickStatus
from gua.report.document import Report
from tests.agent.store.opened import report, writing
from tests.agent.store.oracle import figures, hold_lives
from tests.agent.store.ticks import HOUR, MONDAY, card, holder, tick

RULE = replace(DEFAULT_RULE, long_idle_s=240)
DAY_S = 86_400

_holders = st.lists(
    st.builds(
        lambda user, pid, kind, mb: holder(user, pid, type=kind, memory_mb=mb),
        st.sampled_from(["ada", "ben", "chi"]),
        st.integers(1, 3),
        st.sampled_from([ProcessType.COMPUTE, ProcessType.COMPUTE, ProcessType.GRAPHICS]),
        st.sampled_from([5, 4_000, None]),
    ),
    max_size=3,
    unique_by=lambda one: one.process.pid,
).map(tuple)


@st.composite
def _card(draw: Any, uuid: str) -> CardTick:
    if draw(st.integers(0, 9)) == 0:
        return card(uuid, absent=draw(st.sampled_from([Reason.CARD_LOST, Reason.DRIVER])))
    return card(
        uuid,
        draw(st.sampled_from([0, 0, 0, 0, 9, 10, 80, None])),
        draw(_holders),
        used_mb=draw(st.sampled_from([None, None, 0, 9_000])),
        lists_known=draw(st.integers(0, 7)) > 0,
        power_w=draw(st.sampled_from([61.0, 300.0])),
        rule=RULE,
    )


@st.composite
def _history(draw: Any) -> list[Tick]:
    """Mostly steady ticks; now and then a gap, a jump of the clock, another interval, an extra sync-once."""
    second, interval, ticks = MONDAY // 1000 + draw(st.integers(0, 2_000)), 60, []
    repeated: dict[str, CardTick] = {}
    for _ in range(draw(st.integers(1, 24))):
        jump = draw(st.sampled_from([0] * 8 + [25, 150, 1_900, -40, -300, -1_700, 30 * DAY_S, -30 * DAY_S]))
        interval = draw(st.sampled_from([interval] * 6 + [30, 90]))
        second += interval + jump
        for uuid in ("GPU-a", "GPU-b"):
            # Long stretches would hardly ever come up if every tick were drawn anew.
            if uuid not in repeated or draw(st.integers(0, 3)) == 0:
                repeated[uuid] = draw(_card(uuid))
        cards = [repeated[uuid] for uuid in ("GPU-a", "GPU-b") if draw(st.integers(0, 11)) > 0]
        cover_s = draw(st.sampled_from([interval] * 8 + [0]))
        status = draw(st.sampled_from(list(TickStatus)))
        ticks.append(tick(second * 1000, *cards, cover_ms=cover_s * 1000, status=status))
    return ticks


@st.composite
def _case(draw: Any) -> tuple[list[Tick], list[int], int, int]:
    """A history, after which ticks the writer is closed and opened again, and a window around some of it."""
    ticks = draw(_history())
    cuts = draw(st.lists(st.integers(0, len(ticks)), max_size=3))
    middle = draw(st.sampled_from(ticks)).ts_ms // 1000
    since = middle - draw(st.integers(0, 3_000))
    return ticks, sorted(cuts), since, middle + draw(st.integers(1, 3_000))


def _write(path: Path, ticks: list[Tick], cuts: list[int]) -> None:
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(ticks)])):
        with writing(path, RULE) as writer:
            if number % 2:
                writer.write_ticks(ticks[start:end])
            else:
                for one in ticks[start:end]:
                    writer.write_tick(one)


def _far(ticks: list[Tick], until_s: int) -> int:
    """A `now` after everything, so that no window is cut."""
    return max(*(one.ts_ms for one in ticks), until_s * 1000) + HOUR


@settings(max_examples=60, deadline=None)
@given(_case())
def test_every_figure_of_the_report_is_what_the_ticks_say(case: tuple[list[Tick], list[int], int, int]) -> None:
    ticks, cuts, since_s, until_s = case
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gua.db"
        _write(path, ticks, cuts)
        found = report(path, since_s * 1000, until_s * 1000, now_ms=_far(ticks, until_s))
        everything = report(path, 0, _far(ticks, until_s))
    _compare(found, figures(ticks, since_s, until_s, RULE.long_idle_s))
    first_s = min(one.ts_ms for one in ticks) // 1000
    _compare(everything, figures(ticks, 0, _far(ticks, until_s) // 1000, RULE.long_idle_s), since_s=first_s)
    _compare_holds(everything, ticks)


def _compare(found: Report, right: Any, since_s: int = 0) -> None:
    for one in found["cards"]:
        uuid = one["uuid"]
        for state, amount in one["card_s"].items():
            assert amount == right.card_s[uuid, state]
            assert one["energy_j"] is None or one["energy_j"][state] == right.energy_j[uuid, state]
        assert one["samples"] == right.samples[uuid]
        observed_s = sum(amount for (card_uuid, _), amount in right.card_s.items() if card_uuid == uuid)
        assert one["expected_card_s"] == max(right.expected_s[uuid], observed_s)
        assert one["unobserved_card_s"] == one["expected_card_s"] - observed_s >= 0
    assert {state: found["card_s"][state] for state in found["card_s"]} == {
        state: sum(amount for (_, name), amount in right.card_s.items() if name == state) for state in found["card_s"]
    }
    assert found["coverage"]["unknown_by_reason"] == {name: amount for name, amount in right.reasons.items() if amount}
    assert found["coverage"]["ticks"] == {status.value: right.ticks[status.value] for status in TickStatus}
    assert right.intervals <= set(found["intervals_s"])
    hours = {
        (one["weekday"], one["hour"], state): s for one in found["hours_of_week"] for state, s in one["card_s"].items()
    }
    assert {key: s for key, s in hours.items() if s} == {key: s for key, s in right.hours.items() if s}
    _compare_users(found, right)


def _compare_users(found: Report, right: Any) -> None:
    assert {one["user"] for one in found["users"] if one["card_s"] or one["samples"]} == {
        *(user for (user, _), amount in right.user_card_s.items() if amount),
        *(user for user, amount in right.user_samples.items() if amount),
    }
    held_s = 0.0
    for one in found["users"]:
        user = one["user"]
        assert one["states"] == {state: right.user_card_s[user, state] for state in one["states"]}
        assert one["card_s"] == sum(one["states"].values())
        assert one["shared_card_s"] == right.user_shared_s[user]
        assert one["idle_held_long_card_s"] == right.user_long_s[user]
        assert one["samples"] == right.user_samples[user]
        # a millisecond for each piece of a tick, where time does not divide evenly
        assert abs(one["share_s"] - right.user_share_s[user]) <= 0.2
        held_s += one["share_s"]
    assert round(held_s * 1000) == round(1000 * sum(right.user_share_s.values()))


def _compare_holds(found: Report, ticks: list[Tick]) -> None:
    shown = Counter(
        (
            one["card"],
            (one["pid"], one["user"]),
            tuple(sorted((state, s) for state, s in one["states"].items() if s)),
            one["idle_held_long_card_s"],
            one["until"] is None,
        )
        for one in found["holds"]
    )
    assert shown == Counter(
        (one["card"], one["key"], tuple(sorted((k, s) for k, s in one["s"].items() if s)), one["long"], one["open"])
        for one in hold_lives(ticks, RULE.long_idle_s)
    )


@settings(max_examples=30, deadline=None)
@given(_case(), st.integers(1, 4))
def test_a_window_split_at_slot_edges_adds_up(case: tuple[list[Tick], list[int], int, int], slots: int) -> None:
    ticks, cuts, since_s, until_s = case
    middle_s = (since_s // 900 + slots) * 900
    until_s = max(until_s, middle_s + 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gua.db"
        _write(path, ticks, cuts)
        whole, *halves = (
            report(path, start * 1000, end * 1000, now_ms=_far(ticks, until_s))
            for start, end in ((since_s, until_s), (since_s, middle_s), (middle_s, until_s))
        )
    for name in ("expected_card_s", "observed_card_s", "unobserved_card_s"):
        assert whole["coverage"][name] == sum(half["coverage"][name] for half in halves)
    assert whole["samples"] == sum(half["samples"] for half in halves)
    for user in whole["users"]:
        for name in ("card_s", "share_s", "shared_card_s", "idle_held_long_card_s", "samples"):
            parts = [one[name] for half in halves for one in half["users"] if one["user"] == user["user"]]
            assert user[name] == pytest.approx(sum(parts), abs=1e-6)
