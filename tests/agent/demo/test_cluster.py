"""The made-up host: the same story every time, and one that a real host could tell."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.demo.cluster import FakeSource, demo_tick
from gua.demo.profile import DEMO_HOSTS, HostProfile
from gua.model import ProcessType, Reason, State, Tick, TickStatus

MONDAY_MS = 1772409600000  # 2026-03-02T00:00:00Z
HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS

times = st.integers(min_value=0, max_value=4_000_000_000_000)
hosts = st.sampled_from(sorted(DEMO_HOSTS)).map(DEMO_HOSTS.__getitem__)


def week(profile: HostProfile, step_ms: int = HOUR_MS) -> list[Tick]:
    return [demo_tick(profile, ts_ms, step_ms) for ts_ms in range(MONDAY_MS, MONDAY_MS + WEEK_MS, step_ms)]


def states_of(profile: HostProfile) -> Counter[State]:
    return Counter(card.verdict.state for tick in week(profile) for card in tick.cards)


@given(hosts, times)
def test_tick_depends_on_nothing_but_profile_and_time(profile: HostProfile, ts_ms: int) -> None:
    assert demo_tick(profile, ts_ms, 1000) == demo_tick(replace(profile), ts_ms, 1000)


def test_tick_is_the_same_in_another_process() -> None:
    code = "from gua.demo.cluster import *; print(demo_tick(DEMO_HOSTS['gpu01'], 1772409600000, 1000))"
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert other.stdout == f"{demo_tick(DEMO_HOSTS['gpu01'], MONDAY_MS, 1000)}\n"


@given(hosts, times)
def test_tick_holds_only_readings_that_a_card_can_give(profile: HostProfile, ts_ms: int) -> None:
    tick = demo_tick(profile, ts_ms, 1000)
    assert len(tick.cards) == len(profile.cards)
    for card in tick.cards:
        reading = card.reading
        assert reading.util_pct is not None
        assert reading.util_source is not None
        assert reading.util_max_pct is not None
        assert 0 <= reading.util_pct <= reading.util_max_pct <= 100
        assert reading.memory_used_mb is not None
        assert reading.memory_total_mb is not None
        assert 0 <= reading.memory_used_mb <= reading.memory_total_mb
        assert (reading.processes is None) == (card.holders == () and "compute_processes" in reading.faults)


def test_cards_have_uuids_of_their_own() -> None:
    uuids = [card.reading.uuid for host in DEMO_HOSTS.values() for card in demo_tick(host, MONDAY_MS, 1).cards]
    assert len(set(uuids)) == len(uuids)


@pytest.mark.parametrize("name", ["demo", "gpu01", "gpu02", "gpu03"])
def test_week_has_much_of_every_known_state(name: str) -> None:
    seen = states_of(DEMO_HOSTS[name])
    total = sum(seen.values())
    assert all(seen[state] > total * 0.1 for state in (State.ACTIVE, State.IDLE_HELD, State.TRULY_IDLE))
    assert 0 < seen[State.UNKNOWN] < total * 0.05


def test_forgotten_notebooks_hold_much_memory_at_next_to_no_load() -> None:
    profile = DEMO_HOSTS["gpu01"]
    forgotten = [index for index, card in enumerate(profile.cards) if card.use == "forgotten"]
    cards = [tick.cards[index] for tick in week(profile) for index in forgotten]
    held = [card for card in cards if card.verdict.state is State.IDLE_HELD]
    assert len(held) > len(cards) / 2
    assert all((card.reading.memory_used_mb or 0) > 20_000 and (card.reading.util_pct or 0) < 10 for card in held)


def test_office_cards_rest_at_night_and_at_weekends_nearly_always() -> None:
    profile = DEMO_HOSTS["gpu03"]
    (office,) = [index for index, card in enumerate(profile.cards) if card.use == "office"]
    nights = [demo_tick(profile, MONDAY_MS + day * 24 * HOUR_MS + 3 * HOUR_MS, 1).cards[office] for day in range(28)]
    assert all(not card.holders for card in nights)
    days = [demo_tick(profile, MONDAY_MS + day * 24 * HOUR_MS + 14 * HOUR_MS, 1).cards[office] for day in range(28)]
    assert sum(bool(card.holders) for card in days) >= 10


def test_people_keep_the_hours_of_their_own_clock() -> None:
    seoul = replace(DEMO_HOSTS["gpu03"], utc_offset_ms=9 * HOUR_MS)
    here, there = demo_tick(DEMO_HOSTS["gpu03"], MONDAY_MS + 9 * HOUR_MS, 1), demo_tick(seoul, MONDAY_MS, 1)
    assert [card.holders for card in there.cards] == [card.holders for card in here.cards]


def test_a_desktop_draws_on_its_card_and_leaves_it_truly_idle() -> None:
    profile = DEMO_HOSTS["gpu03"]
    (desktop,) = [index for index, card in enumerate(profile.cards) if card.use == "desktop"]
    card = demo_tick(profile, MONDAY_MS, 1).cards[desktop]
    assert [holder.process.type for holder in card.holders] == [ProcessType.GRAPHICS]
    assert card.verdict.state is State.TRULY_IDLE


def test_some_card_has_two_users_at_once_and_some_users_have_no_name() -> None:
    ticks = [tick for name in ("gpu01", "gpu02") for tick in week(DEMO_HOSTS[name])]
    holders = [[holder.identity.user for holder in card.holders] for tick in ticks for card in tick.cards]
    assert any(len(set(users)) == 2 for users in holders)
    assert {"uid:1017", "container:3f9c0ad41b7e", "alice", "bob"} <= {user for users in holders for user in users}


def test_lost_card_is_there_before_its_day_and_absent_for_good_after_it() -> None:
    profile = replace(DEMO_HOSTS["gpu02"], lost_from_ms=MONDAY_MS)
    before, after = demo_tick(profile, MONDAY_MS - 1, 1), demo_tick(profile, MONDAY_MS + WEEK_MS, 1)
    assert before.cards[7].reading.absent is None
    assert after.cards[7].reading.absent is Reason.CARD_LOST
    assert after.cards[7].verdict.state is State.UNKNOWN
    assert after.status is TickStatus.PARTIAL
    assert all(card.reading.absent is None for card in after.cards[:7])


def test_process_is_the_same_one_all_through_its_session() -> None:
    keys = [
        {(holder.identity.pid, holder.identity.start_ticks) for holder in tick.cards[0].holders}
        for tick in week(DEMO_HOSTS["gpu01"], step_ms=10 * 60_000)
    ]
    changes = sum(left != right for left, right in zip(keys, keys[1:]))
    assert 2 <= changes <= 20


def test_fake_source_is_the_demo_host_at_that_time() -> None:
    source = FakeSource()
    assert source.collect(ts_ms=MONDAY_MS, cover_ms=30_000, known=()) == demo_tick(
        DEMO_HOSTS["demo"], MONDAY_MS, 30_000
    )
    source.close()
