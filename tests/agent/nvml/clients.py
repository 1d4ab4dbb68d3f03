"""Clients that are made with a child of their own, and how they are waited for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Callable

from gua.model import Snapshot
from gua.nvml.client import WorkerClient
from tests.nvml_stub import Card, Scene

HEALTHY = Scene(cards=(Card("GPU-a", util=5),))
LONG_MS = 600_000

Start = Callable[..., WorkerClient]


def child_of(client: WorkerClient) -> int:
    assert client._child is not None
    return client._child.pid


def until(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    ends_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < ends_s, "it did not happen in time"
        time.sleep(0.01)


def warm(client: WorkerClient, scene: Path) -> None:
    """One good sample, however long a busy machine takes to start the child."""
    HEALTHY.save(scene)
    recover(client)


def recover(client: WorkerClient) -> None:
    until(lambda: [card.util_pct for card in client.sample().cards] == [5])


def error_of(snapshot: Snapshot) -> str:
    assert snapshot.fault is not None
    return snapshot.fault.error
