"""Zones on hosts with and without zone data."""

from __future__ import annotations

from datetime import timezone
from pathlib import Path

import pytest

from gua.report.zones import find_zone, local_zone_name


@pytest.mark.parametrize("name", ["UTC", "Etc/UTC", "Z"])
def test_utc_is_known_without_zone_data(name: str) -> None:
    assert find_zone(name) is timezone.utc


@pytest.mark.parametrize("name", ["Mars/Olympus", "../etc/passwd", "", "America", "/etc/localtime", "a\x00b"])
def test_zone_that_is_not_one_is_none(name: str) -> None:
    assert find_zone(name) is None


def test_local_zone_is_what_tz_says_first(tmp_path: Path) -> None:
    assert local_zone_name({"TZ": ":UTC"}, tmp_path / "absent") == "UTC"


def test_local_zone_follows_the_link_of_localtime(tmp_path: Path) -> None:
    zone = tmp_path / "usr/share/zoneinfo/Etc/UTC"
    zone.parent.mkdir(parents=True)
    zone.touch()
    (tmp_path / "localtime").symlink_to(zone)
    assert local_zone_name({}, tmp_path / "localtime") == "Etc/UTC"


def test_local_zone_of_a_machine_without_one_is_utc(tmp_path: Path) -> None:
    assert local_zone_name({"TZ": "Mars/Olympus"}, tmp_path / "absent") == "UTC"
