from __future__ import annotations

import pytest

from gua_fleet.ask import exit_status
from gua_fleet.model import Host, HostResult, Outcome

OK, DOWN, QUIET, OUT = Outcome.OK, Outcome.UNREACHABLE, Outcome.NO_GPU, Outcome.SKIPPED


@pytest.mark.parametrize(
    ("outcomes", "allow_missing", "status"),
    [
        ([OK, OK], 0, 0),
        ([OK, QUIET, OUT], 0, 0),
        ([OK, DOWN], 0, 1),
        ([OK, DOWN], 1, 0),
        ([OK, DOWN, DOWN], 1, 1),
        ([DOWN, DOWN], 2, 3),
        ([DOWN, OUT], 0, 3),
        ([OUT], 0, 3),
        ([QUIET], 0, 0),
    ],
)
def test_exit_status(outcomes: list[Outcome], allow_missing: int, status: int) -> None:
    results = [HostResult(Host("n", "n"), outcome) for outcome in outcomes]
    assert exit_status(results, allow_missing) == status


def test_exit_status_bad_news_fails_however_many_may_be_missing() -> None:
    results = [HostResult(Host("n", "n"), OK, document={"ready": False}), HostResult(Host("m", "m"), DOWN)]
    assert exit_status(results, 1) == 0
    assert exit_status(results, 1, sound=lambda result: False) == 1
    assert exit_status(results[1:], 1, sound=lambda result: False) == 3
