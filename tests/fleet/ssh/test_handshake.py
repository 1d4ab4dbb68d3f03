from __future__ import annotations

import pytest

from gua_fleet.model import Host
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.handshake import limit_s
from gua_fleet.ssh.target import target_from_options

HOST = Host("n", "n")


@pytest.mark.parametrize(
    ("timeout_s", "connect_timeout", "most_s"),
    [
        (20, "none", 10),
        (60, "none", 30),  # who waits longer for a slow link waits longer for its hand-shake
        (600, "none", 300),
        (600, "7", 7),
        (600, "400", 400),  # as it was asked for
    ],
)
def test_connecting_has_ten_seconds_or_half_of_a_longer_deadline_unless_told_otherwise(
    timeout_s: float, connect_timeout: str, most_s: float
) -> None:
    assert limit_s(Attempt(HOST, timeout_s), target_from_options(HOST, {"connecttimeout": [connect_timeout]})) == most_s


@pytest.mark.parametrize("connect_timeout", ["none", "400"])
def test_connecting_has_no_more_than_the_deadline(connect_timeout: str) -> None:
    target = target_from_options(HOST, {"connecttimeout": [connect_timeout]})
    assert 0 < limit_s(Attempt(HOST, 5), target) <= 5
