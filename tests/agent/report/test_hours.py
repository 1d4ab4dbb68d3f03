"""Hours of the local week: any zone, any day of a clock change."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.coverage import SLOT_MS
from gua.report.hours import even_stretches, hours_of_week
from gua.report.period import named_period
from gua.report.zones import find_zone
from tests.agent.store.opened import report, stored
from tests.agent.store.ticks import MINUTE, card, tick

ZONES = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Chatham"]
ZONES += ["America/St_Johns", "America/Santiago", "Asia/Tehran", "Africa/Casablanca"]
YEAR_2024, YEAR_2030 = 1_704_067_200_000 // SLOT_MS, 1_893_456_000_000 // SLOT_MS


@given(st.sampled_from(ZONES), st.integers(YEAR_2024, YEAR_2030), st.integers(0, 800 * 96))
def test_weeks_of_a_stretch_are_alike_in_their_local_hours(zone_name: str, first: int, count: int) -> None:
    zone, week = find_zone(zone_name), 7 * 96
    stretches = even_stretches(zone, first, first + count)
    assert [slot for stretch in stretches for slot in stretch] == [
        first,
        *(edge for _, end in stretches[:-1] for edge in (end, end)),
        first + count,
    ][: 2 * len(stretches)]
    for start, end in stretches:
        assert start < end
        for slot in range(start, end, 61):
            here, there = (
                datetime.fromtimestamp(one * SLOT_MS // 1000, zone) for one in (slot, start + (slot - start) % week)
            )
            assert (here.weekday(), here.hour, here.minute) == (there.weekday(), there.hour, there.minute)


@given(st.sampled_from(ZONES), st.integers(YEAR_2024, YEAR_2030), st.lists(st.integers(0, 15), min_size=1, max_size=40))
def test_every_minute_is_told_in_its_own_local_hour(zone_name: str, first: int, minutes: list[int]) -> None:
    zone = find_zone(zone_name)
    assert zone is not None
    slots = {(first + place, place % 4): count * MINUTE for place, count in enumerate(minutes)}
    right: Counter[tuple[int, int, int]] = Counter()
    for (slot, state), covered_ms in slots.items():
        for minute in range(covered_ms // MINUTE):
            moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(
                milliseconds=slot * SLOT_MS + minute * MINUTE
            )
            local = moment.astimezone(zone)
            right[local.weekday(), local.hour, state] += 60
    found = {
        (one["weekday"], one["hour"], place): seconds
        for one in hours_of_week(slots, zone)
        for place, seconds in enumerate(one["card_s"].values())
        if seconds
    }
    assert found == {key: seconds for key, seconds in right.items() if seconds}


@pytest.mark.parametrize(
    ("noon", "length_h", "hour_two_h"),
    [("2026-03-30T12:00:00+02:00", 23, 0), ("2026-10-26T12:00:00+01:00", 25, 2), ("2026-07-01T12:00:00+02:00", 24, 1)],
)
def test_the_day_of_a_clock_change_is_as_long_as_it_was(
    tmp_path: Path, noon: str, length_h: int, hour_two_h: int
) -> None:
    berlin = find_zone("Europe/Berlin")
    now_ms = round(datetime.fromisoformat(noon).timestamp() * 1000)
    since_ms, until_ms = named_period("yesterday", now_ms=now_ms, zone=berlin)
    assert until_ms - since_ms == length_h * 60 * MINUTE
    ticks = [tick(ms, card(), cover_ms=15 * MINUTE) for ms in range(since_ms - 4 * SLOT_MS, now_ms, 15 * MINUTE)]
    path = stored(tmp_path / "gua.db", ticks, interval_ms=15 * MINUTE)
    found = report(path, since_ms, until_ms, now_ms=now_ms, zone=berlin, zone_name="Europe/Berlin")
    hours = {one["hour"]: one["card_s"]["truly-idle"] for one in found["hours_of_week"]}
    assert sum(hours.values()) == found["coverage"]["expected_card_s"] == length_h * 3600
    assert hours.get(2, 0) == hour_two_h * 3600
    assert {one["weekday"] for one in found["hours_of_week"]} == {6 if length_h != 24 else 1}


def test_a_zone_that_is_not_known_has_no_hours() -> None:
    assert hours_of_week({(YEAR_2024, 0): MINUTE}, None) == []
