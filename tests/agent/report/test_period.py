"""From what was typed to two absolute times."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Optional

import pytest

from gua.errors import UsageError
from gua.report.period import parse_period

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
