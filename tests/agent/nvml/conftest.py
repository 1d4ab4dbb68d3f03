"""A client whose child loads the stub: what a test reads went through the real bindings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

from gua.clock import SystemClock
from gua.model import CardReading, Snapshot
from gua.nvml.client import WorkerClient
from tests.agent.nvml.clients import Start
from tests.nvml_stub import Card, Scene


@pytest.fixture
def client(nvml_scene: Path) -> Iterator[WorkerClient]:
    """Its deadline is long enough for a slow machine; tests of missed deadlines make their own client."""
    client = WorkerClient(clock=SystemClock(), deadline_s=20.0)
    yield client
    client.close()


@pytest.fixture
def start(nvml_scene: Path) -> Iterator[Start]:
    """Makes clients, with a deadline for a slow machine unless told; all are closed in the end."""
    clients = []

    def make(**options: object) -> WorkerClient:
        clients.append(WorkerClient(clock=SystemClock(), **{"deadline_s": 20.0, **options}))  # type: ignore[arg-type]
        return clients[-1]

    yield make
    for client in clients:
        client.close()
        if client._unreaped is not None:
            client._unreaped.kill()


@pytest.fixture
def read_scene(nvml_scene: Path, client: WorkerClient) -> Callable[[Scene], Snapshot]:
    """Saves a scene and samples it."""

    def read(scene: Scene) -> Snapshot:
        scene.save(nvml_scene)
        return client.sample()

    return read


@pytest.fixture
def read_card(read_scene: Callable[[Scene], Snapshot]) -> Callable[[Card], CardReading]:
    """Samples a host with this one card, and gives its reading."""

    def read(card: Card) -> CardReading:
        (reading,) = read_scene(Scene(cards=(card,))).cards
        return reading

    return read
