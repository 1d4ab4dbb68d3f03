"""What each process used of its card between two readings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Callable, Optional

import pytest

from gua.model import CardReading, Snapshot
from gua.nvml.process_use import mean_use
from tests.nvml_stub import GIB, Card, Error, Instance, Process, Samples, Scene, Use

ReadScene = Callable[[Scene], Snapshot]
CALL = "nvmlDeviceGetProcessUtilization"
WORKER, PARKER = 10, 20


@pytest.fixture
def read(read_scene: ReadScene) -> Callable[..., CardReading]:
    """Samples one card that two processes hold."""

    def sample(
        *uses: Use, samples: Optional[Samples] = None, rules: tuple[Error, ...] = (), util: int = 50
    ) -> CardReading:
        held = (Process(WORKER, GIB), Process(PARKER, 20 * GIB))
        card = Card("GPU-a", util=util, processes=held, process_uses=uses, samples=samples, rules=rules)
        return read_scene(Scene(cards=(card,))).cards[0]

    return sample


def _use(reading: CardReading) -> dict[int, Optional[float]]:
    return {process.pid: process.sm_util_pct for process in reading.processes or ()}


UNKNOWN = {WORKER: None, PARKER: None}


def test_one_who_parks_memory_beside_anothers_work_is_seen(read: Callable[..., CardReading]) -> None:
    assert _use(read(Use(WORKER, 1, 99))) == UNKNOWN  # from before the first reading
    assert _use(read(Use(WORKER, 1, 99), Use(WORKER, 2, 90), Use(WORKER, 3, 80))) == {WORKER: 85.0, PARKER: 0.0}


def test_without_new_samples_the_use_is_not_known(read: Callable[..., CardReading]) -> None:
    read(Use(WORKER, 1, 99))
    reading = read(Use(WORKER, 1, 99))
    assert (_use(reading), reading.faults) == (UNKNOWN, {})


def test_on_a_card_that_did_nothing_nobody_used_anything(read: Callable[..., CardReading]) -> None:
    read(Use(WORKER, 1, 99), samples=Samples(((1, 0),)))
    assert _use(read(Use(WORKER, 1, 99), samples=Samples(((2, 0), (3, 0))), util=0)) == {WORKER: 0.0, PARKER: 0.0}


def test_samples_of_nothing_on_a_card_that_works_do_not_say_that_nobody_used_it(
    read: Callable[..., CardReading],
) -> None:
    read(Use(WORKER, 1, 99), samples=Samples(((1, 0),)))
    assert _use(read(Use(WORKER, 1, 99), samples=Samples(((2, 0), (3, 0))))) == UNKNOWN


@pytest.mark.parametrize("error", ["NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "NOT_FOUND", "NO_PERMISSION"])
def test_driver_that_does_not_tell_it_has_no_fault(read: Callable[..., CardReading], error: str) -> None:
    for _ in range(2):
        reading = read(Use(WORKER, 2, 9), rules=(Error(CALL, error),))
        assert (_use(reading), reading.faults) == (UNKNOWN, {})


def test_failing_call_costs_the_use_and_not_the_list(read: Callable[..., CardReading]) -> None:
    reading = read(Use(WORKER, 2, 9), rules=(Error(CALL, "UNKNOWN"),))
    assert (_use(reading), reading.faults["process_use"].error) == (UNKNOWN, "UNKNOWN")


def test_impossible_figure_is_left_out(read: Callable[..., CardReading]) -> None:
    read(Use(WORKER, 1, 1))
    uses = (Use(WORKER, 2, 101), Use(WORKER, 3, 20), Use(WORKER, 4, 2**32 - 1), Use(PARKER, 4, 5))
    assert _use(read(*uses)) == {WORKER: 20.0, PARKER: 5.0}


def test_a_process_whose_every_figure_is_impossible_is_unknown_and_not_without_use(
    read: Callable[..., CardReading],
) -> None:
    read(Use(WORKER, 1, 1))
    assert _use(read(Use(WORKER, 2, 2**32 - 1), Use(30, 2, 9))) == {WORKER: None, PARKER: 0.0}
    assert _use(read(Use(WORKER, 3, 2**32 - 1))) == UNKNOWN  # a list in which nothing can be believed


def test_card_without_processes_is_not_asked(read_scene: ReadScene) -> None:
    (reading,) = read_scene(Scene(cards=(Card("GPU-a", rules=(Error(CALL, "UNKNOWN"),)),))).cards
    assert (reading.processes, reading.faults) == ((), {})


def test_mig_instance_is_not_asked(read_scene: ReadScene) -> None:
    instance = Instance("MIG-1", processes=(Process(5, GIB, gpu_instance=7),), rules=(Error(CALL, "UNKNOWN"),))
    (reading,) = read_scene(Scene(cards=(Card("GPU-a", mig_max=7, instances=(instance,)),))).cards
    assert "process_use" not in reading.faults


def test_mean_is_over_the_samples_of_each_process() -> None:
    samples = [SimpleNamespace(pid=pid, smUtil=use) for pid, use in ((1, 10), (2, 7), (1, 30), (3, 0))]
    assert mean_use(samples) == {1: 20.0, 2: 7.0, 3: 0.0}
    assert mean_use([]) == {}
