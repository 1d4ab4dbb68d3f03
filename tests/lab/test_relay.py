"""What a bad link loses, reckoned; that it does so on a real one is for the lab."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.lab.relay import losses


@pytest.mark.parametrize("loss_pct", [0, 1, 20, 33, 50, 99, 100])
def test_of_a_hundred_frames_the_asked_share_is_lost_evenly(loss_pct: int) -> None:
    lost = list(islice(losses(loss_pct), 1000))
    assert sum(lost) == 10 * loss_pct
    assert all(abs(sum(lost[at : at + 100]) - loss_pct) <= 1 for at in range(900))


def test_of_a_link_that_loses_a_fifth_no_two_lost_frames_follow_each_other() -> None:
    assert list(islice(losses(20), 10)) == [False, False, False, False, True] * 2
