"""The board itself: what it refuses, so that what it takes means something."""

from __future__ import annotations

from typing import Any

import pytest

from tests.board.contract import faults_of

FIT: dict[str, Any] = {
    "schemaVersion": "availability.snapshot.v1",
    "collectionStatus": "ok",
    "observedAt": "2026-03-02T00:00:00Z",
    "host": {"hostname": "node-1", "agentVersion": "1", "driverVersion": "550"},
    "gpus": [],
    "errors": [],
}


def test_what_fits_is_taken() -> None:
    assert faults_of(FIT) == []
    assert faults_of({**FIT, "observedAt": "2026-03-02T00:00:00.250+01:00"}) == []


@pytest.mark.parametrize(
    "change",
    [
        {"observedAt": "yesterday"},
        {"observedAt": "2026-03-02"},
        {"observedAt": "2026-03-02T00:00:00"},
        {"observedAt": 1772409600},
        {"collectionStatus": "error"},
        {"errors": ["card_lost"]},
        {"host": {**FIT["host"], "commandLine": "python"}},
        {"command": "python"},
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(change: dict[str, Any]) -> None:
    assert faults_of({**FIT, **change}) != []
