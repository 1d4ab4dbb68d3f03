"""Filling a real database with made-up history."""

from __future__ import annotations

from pathlib import Path

import pytest

from gua.demo.history import INTERVAL_MS, fill, history_begins_ms, top_up
from gua.demo.profile import DEMO_HOSTS
from gua.demo.recording import open_demo_writer, zone_offset_ms
from gua.errors import UsageError
from gua.store.database import open_reader

NOW_MS = 1772452800000  # 2026-03-02T12:00:00Z
HOUR_MS = 3_600_000
PROFILE = DEMO_HOSTS["demo"]


class FixedClock:
    """Time stands still."""

    def now_ms(self) -> int:
        return NOW_MS

    def monotonic_s(self) -> float:
        return 0.0

    def sleep_s(self, seconds: float) -> None:
        raise AssertionError("filling never waits")


def test_fill_writes_the_tick_that_covers_the_start_and_none_at_the_end(tmp_path: Path) -> None:
    with open_demo_writer(tmp_path / "gua.db", PROFILE, FixedClock()) as writer:
        assert fill(writer, PROFILE, since_ms=NOW_MS - HOUR_MS + 1, until_ms=NOW_MS) == HOUR_MS // INTERVAL_MS
        assert history_begins_ms(writer) == NOW_MS - HOUR_MS
        assert {device.last_seen_ms for device in writer.known_devices()} == {NOW_MS - INTERVAL_MS}


def test_top_up_goes_on_where_history_ended_and_then_has_nothing_to_do(tmp_path: Path) -> None:
    since_ms = NOW_MS - 2 * HOUR_MS
    with open_demo_writer(tmp_path / "gua.db", PROFILE, FixedClock()) as writer:
        assert history_begins_ms(writer) is None
        first = top_up(writer, PROFILE, since_ms=since_ms, until_ms=NOW_MS - HOUR_MS)
    with open_demo_writer(tmp_path / "gua.db", PROFILE, FixedClock()) as writer:
        second = top_up(writer, PROFILE, since_ms=since_ms, until_ms=NOW_MS)
        third = top_up(writer, PROFILE, since_ms=since_ms, until_ms=NOW_MS)
    assert (first, second, third) == (6, 6, 0)


def test_recording_is_named_for_the_made_up_host(tmp_path: Path) -> None:
    with open_demo_writer(tmp_path / "new directory/gua.db", PROFILE, FixedClock()) as writer:
        fill(writer, PROFILE, since_ms=NOW_MS - HOUR_MS, until_ms=NOW_MS)
    with open_reader(tmp_path / "new directory/gua.db") as reader:
        host = reader.host()
    assert host is not None
    assert (host.hostname, host.machine_id) == ("demo", PROFILE.machine_id)


def test_recording_refuses_the_history_of_another_host(tmp_path: Path) -> None:
    with open_demo_writer(tmp_path / "gua.db", DEMO_HOSTS["gpu01"], FixedClock()):
        pass
    with pytest.raises(UsageError, match="another host"), open_demo_writer(tmp_path / "gua.db", PROFILE, FixedClock()):
        pass


def test_zone_offset_is_ahead_of_utc_and_nothing_for_an_unknown_zone() -> None:
    assert zone_offset_ms("UTC", NOW_MS) == 0
    assert zone_offset_ms("Mars/Olympus", NOW_MS) == 0
    assert zone_offset_ms("Asia/Seoul", NOW_MS) in (9 * HOUR_MS, 0)  # 0 where this machine has no zone data
