"""From what was typed to two absolute times."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Optional
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.errors import UsageError
from gua.report.period import NAMED_PERIODS, named_period, parse_period

NOW_MS = 1772452800000  # 2026-03-02T12:00:00Z
HOUR_MS = 3_600_000


def test_period_of_a_duration_ends_now() -> None:
    assert parse_period("1h", None, now_ms=NOW_MS, zone=None) == (NOW_MS - HOUR_MS, NOW_MS)


def test_period_duration_counts_back_from_the_end() -> None:
    since_ms, until_ms = parse_period("1h", "2026-03-02T06:00:00Z", now_ms=NOW_MS, zone=None)
    assert (since_ms, until_ms) == (NOW_MS - 7 * HOUR_MS, NOW_MS - 6 * HOUR_MS)


def test_period_end_may_be_a_duration_ago() -> None:
    assert parse_period("1h", "2h", now_ms=NOW_MS, zone=None) == (NOW_MS - 3 * HOUR_MS, NOW_MS - 2 * HOUR_MS)


def test_period_time_without_offset_is_read_in_the_zone() -> None:
    seoul = timezone(timedelta(hours=9))
    assert parse_period("2026-03-02T20:00", None, now_ms=NOW_MS, zone=seoul)[0] == NOW_MS - HOUR_MS


@pytest.mark.parametrize(("since", "until"), [("soon", None), ("1h", "later"), ("", None)])
def test_period_of_neither_duration_nor_time_is_a_usage_error(since: str, until: Optional[str]) -> None:
    with pytest.raises(UsageError, match="no duration"):
        parse_period(since, until, now_ms=NOW_MS, zone=None)


@pytest.mark.parametrize("since", ["9999999d", "0001-01-01", "1969-12-31"])
def test_period_never_begins_before_1970(since: str) -> None:
    assert parse_period(since, None, now_ms=NOW_MS, zone=timezone(timedelta(hours=9)))[0] == 0


def test_period_that_ends_before_it_begins_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="empty"):
        parse_period("2026-03-03", None, now_ms=NOW_MS, zone=None)


def utc(text: str) -> int:
    return round(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


@pytest.mark.parametrize(
    ("name", "since", "until"),
    [
        ("today", "2026-03-03T15:00", "2026-03-04T10:30"),
        ("yesterday", "2026-03-02T15:00", "2026-03-03T15:00"),
        ("last-week", "2026-02-22T15:00", "2026-03-01T15:00"),
        ("last-month", "2026-01-31T15:00", "2026-02-28T15:00"),
    ],
)
def test_named_period_follows_the_calendar_of_its_zone(name: str, since: str, until: str) -> None:
    now_ms = utc("2026-03-04T10:30")  # Wednesday 19:30 in Seoul
    assert named_period(name, now_ms=now_ms, zone=timezone(timedelta(hours=9))) == (utc(since), utc(until))


@given(st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)), st.sampled_from(["Europe/Berlin", "America/Santiago"]))
def test_named_periods_begin_and_end_on_local_days(moment: datetime, zone_name: str) -> None:
    zone, now_ms = ZoneInfo(zone_name), round(moment.replace(tzinfo=timezone.utc).timestamp() * 1000)
    periods = {name: named_period(name, now_ms=now_ms, zone=zone) for name in NAMED_PERIODS}
    days = {name: [datetime.fromtimestamp(ms / 1000, zone).date() for ms in period] for name, period in periods.items()}
    today = moment.replace(tzinfo=timezone.utc).astimezone(zone).date()
    assert periods["today"][1] == now_ms
    assert periods["yesterday"][1] == periods["today"][0]
    assert days["today"][0] == today
    assert days["yesterday"] == [today - timedelta(days=1), today]
    monday = today - timedelta(days=today.weekday())
    assert days["last-week"] == [monday - timedelta(days=7), monday]
    assert [day.day for day in days["last-month"]] == [1, 1]
    assert days["last-month"][1] == today.replace(day=1)
