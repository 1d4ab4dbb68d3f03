"""Where utilisation comes from: the driver's samples of the whole interval, or a moment."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Callable, Optional

import pytest

from gua.model import CardReading, Snapshot, TickStatus, UtilSource
from gua.nvml.watermark import Watermark
from gua.reconcile import reconcile
from tests.nvml_stub import Card, Error, Samples, Scene

ReadScene = Callable[[Scene], Snapshot]
Values = tuple[tuple[int, float], ...]

SAMPLES = "nvmlDeviceGetSamples"


@pytest.fixture
def read(read_scene: ReadScene) -> Callable[..., CardReading]:
    """Samples one card, whose point reading is 7 %."""

    def sample(values: Optional[Values], kind: int = 1, *rules: Error) -> CardReading:
        samples = None if values is None else Samples(values, kind)
        return read_scene(Scene(cards=(Card("GPU-a", util=7, samples=samples, rules=rules),))).cards[0]

    return sample


def _util(reading: CardReading) -> tuple[Optional[int], Optional[int], Optional[UtilSource]]:
    return reading.util_pct, reading.util_max_pct, reading.util_source


POINT = (7, None, UtilSource.POINT)


def test_burst_between_two_readings_is_in_mean_and_maximum(read: Callable[..., CardReading]) -> None:
    assert _util(read(((1, 0),))) == POINT  # the first reading only says from where to count
    assert _util(read(((1, 0), (2, 0), (3, 90), (4, 0)))) == (30, 90, UtilSource.SAMPLES)
    assert _util(read(((3, 90), (4, 0), (5, 1), (6, 2)))) == (1, 2, UtilSource.SAMPLES)


def test_idle_interval_is_zero_and_not_unknown(read: Callable[..., CardReading]) -> None:
    read(((1, 50),))
    assert _util(read(((1, 50), (2, 0), (3, 0)))) == (0, 0, UtilSource.SAMPLES)


def test_mean_just_below_the_threshold_is_not_rounded_up_to_it(read: Callable[..., CardReading]) -> None:
    read(((1, 0),))
    assert read(((2, 9), (3, 10))).util_pct == 9


def test_card_whose_driver_keeps_no_samples_gives_the_point_reading(read: Callable[..., CardReading]) -> None:
    for _ in range(3):
        reading = read(None)
        assert (_util(reading), reading.faults) == (POINT, {})


def test_samples_that_all_were_seen_give_the_point_reading(read: Callable[..., CardReading]) -> None:
    for _ in range(4):
        assert _util(read(((1, 50), (2, 60)))) == POINT
    assert _util(read(((2, 60), (3, 40)))) == (40, 40, UtilSource.SAMPLES)


def test_driver_that_lists_no_sample_at_all_gives_the_point_reading(read: Callable[..., CardReading]) -> None:
    for _ in range(3):
        reading = read(())
        assert (_util(reading), reading.faults) == (POINT, {})


def test_buffer_that_wrapped_gives_the_mean_of_what_is_left(read: Callable[..., CardReading]) -> None:
    read(((1, 0),))
    assert _util(read(((900, 20), (901, 40)))) == (30, 40, UtilSource.SAMPLES)


def test_clock_of_the_driver_that_went_back_is_counted_from_anew(read: Callable[..., CardReading]) -> None:
    read(((1000, 0),))
    read(((1000, 0), (1001, 80)))
    went_back: Values = ((5, 10), (6, 20))
    assert [_util(read(went_back)) for _ in range(2)] == [POINT] * 2
    assert _util(read((*went_back, (7, 60)))) == (60, 60, UtilSource.SAMPLES)


def test_time_of_the_far_future_spoils_no_later_reading(read: Callable[..., CardReading]) -> None:
    read(((10, 0),))
    read(((11, 0), (2**64 - 1, 0)))
    read(((12, 50),))
    read(((12, 50), (13, 50)))
    assert _util(read(((13, 50), (14, 90)))) == (90, 90, UtilSource.SAMPLES)


@pytest.mark.parametrize("kind", range(7))
def test_every_type_of_value_is_understood(read: Callable[..., CardReading], kind: int) -> None:
    read(((1, 0),), kind)
    assert _util(read(((2, 30), (3, 41)), kind)) == (35, 41, UtilSource.SAMPLES)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (((2, 101),), 1),
        (((2, -1),), 4),
        (((2, -1),), 5),
        (((2, float("nan")),), 0),
        (((2, 5), (3, 4e9)), 1),
        (((2, 5),), 9),
    ],
    ids=["above 100", "below 0, 64 bits", "below 0", "no number", "all ones", "unknown type"],
)
def test_impossible_sample_is_a_fault_and_the_point_reading_stands(
    read: Callable[..., CardReading], values: Values, kind: int
) -> None:
    read(((1, 0),), kind if kind < 7 else 1)
    reading = read(values, kind)
    assert (_util(reading), reading.faults["util_samples"].error) == (POINT, "IMPOSSIBLE_VALUE")


def test_cards_are_counted_apart(read_scene: ReadScene) -> None:
    def scene(a: Values, b: Values) -> Scene:
        return Scene(cards=(Card("GPU-a", samples=Samples(a)), Card("GPU-b", samples=Samples(b))))

    read_scene(scene(((100, 1),), ((1, 1),)))
    cards = read_scene(scene(((101, 10),), ((2, 20),))).cards
    assert [card.util_pct for card in cards] == [10, 20]


def test_list_that_grows_between_the_two_calls_is_asked_again(read: Callable[..., CardReading]) -> None:
    read(((1, 0),))
    reading = read(((2, 33),), 1, Error(SAMPLES, "INSUFFICIENT_SIZE", first=2))
    assert _util(reading) == (33, 33, UtilSource.SAMPLES)


def test_list_that_never_stops_growing_is_given_up(read: Callable[..., CardReading]) -> None:
    read(((1, 0),))
    reading = read(((2, 33),), 1, Error(SAMPLES, "INSUFFICIENT_SIZE"))
    assert (_util(reading), reading.faults["util_samples"].error) == (POINT, "INSUFFICIENT_SIZE")


def test_driver_without_the_function_gives_the_point_reading_and_says_so_once(
    nvml_scene: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from gua.clock import SystemClock
    from gua.nvml.client import WorkerClient
    from tests.nvml_stub import build
    from tests.nvml_stub.fixture import BUILD_DIR

    library = build(BUILD_DIR, without=[SAMPLES, "nvmlDeviceGetProcessUtilization"])
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    Scene(cards=(Card("GPU-a", util=7, samples=Samples(((1, 1),))),)).save(nvml_scene)
    caplog.set_level("INFO")
    client = WorkerClient(clock=SystemClock(), deadline_s=60.0)
    readings = [client.sample().cards[0] for _ in range(3)]
    client.close()
    assert [(_util(reading), reading.faults) for reading in readings] == [(POINT, {})] * 3
    assert caplog.text.count(f"does not have {SAMPLES}") == 1


def test_watermark_asks_for_everything_after_an_answer_without_news() -> None:
    mark = Watermark()
    at = [SimpleNamespace(timeStamp=stamp) for stamp in (5, 6)]
    assert (mark.since_us, mark.take(at)) == (0, [])
    assert (mark.since_us, mark.take([*at, SimpleNamespace(timeStamp=9)])) == (0, [SimpleNamespace(timeStamp=9)])
    assert (mark.since_us, mark.take([])) == (9, [])
    assert mark.since_us == 0


Steps = Callable[..., list[tuple[Optional[int], Optional[int], Optional[UtilSource]]]]


@pytest.fixture
def steps(read_scene: ReadScene) -> Steps:
    """One reading for each (value of the new sample, point reading); None: no new sample, or no point reading."""

    def run(*pairs: tuple[Optional[int], Optional[int]]) -> list[tuple[object, object, object]]:
        at, values = 1, [(1, 0.0)]
        read_scene(Scene(cards=(Card("GPU-a", util=0, samples=Samples(tuple(values))),)))
        found = []
        for sample, point in pairs:
            if sample is not None:
                at += 1
                values.append((at, sample))
            card = Card("GPU-a", util=point, samples=Samples(tuple(values[-3:])))
            found.append(_util(read_scene(Scene(cards=(card,))).cards[0]))
        return found

    return run


IDLE = (0, 0, UtilSource.SAMPLES)


def _point(pct: int) -> tuple[int, None, UtilSource]:
    return pct, None, UtilSource.POINT


def test_card_that_works_is_never_read_as_idle_by_samples_that_are_always_0(steps: Steps) -> None:
    assert steps(*[(0, 77)] * 5) == [_point(77)] * 5


def test_nor_is_one_that_works_in_bursts(steps: Steps) -> None:
    assert steps(*[(0, 77), (0, 0)] * 4) == [
        *[_point(77), IDLE] * 2,  # so far it may have been a job that had just begun
        *[_point(77), _point(0)] * 2,
    ]


@pytest.mark.parametrize(("point", "believed"), [(9, True), (10, False)])
def test_point_reading_that_is_not_clear_is_no_witness_against_samples(
    steps: Steps, point: int, believed: bool
) -> None:
    assert steps(*[(0, point)] * 3)[-1] == (IDLE if believed else _point(point))


def test_samples_that_tell_of_work_between_two_contradictions_are_believed(steps: Steps) -> None:
    found = steps((0, 77), (0, 77), (1, 77), (0, 77), (0, 77), (0, 0))
    assert found[2] == (1, 1, UtilSource.SAMPLES)
    assert found[-1] == IDLE


def test_reading_without_new_samples_or_without_a_point_reading_between_changes_nothing(steps: Steps) -> None:
    found = steps((0, 77), (None, 77), (0, None), (0, 0), (0, 77), (0, 77), (0, 0))
    assert found == [_point(77), _point(77), IDLE, IDLE, _point(77), _point(77), _point(0)]


def test_samples_are_believed_again_once_one_of_them_is_above_0(steps: Steps) -> None:
    found = steps(*[(0, 77)] * 3, (0, 0), (0, 5), (40, 77), (0, 0), (0, 5))
    assert found[2:] == [_point(77), _point(0), _point(5), (40, 40, UtilSource.SAMPLES), IDLE, IDLE]


def test_card_whose_samples_are_not_believed_is_unknown_without_a_point_reading(steps: Steps) -> None:
    assert steps(*[(0, 77)] * 3, (0, None), (0, 77))[2:] == [_point(77), (None, None, None), _point(77)]


def test_samples_that_are_not_believed_are_said_once_and_the_card_is_whole(
    read_scene: ReadScene, caplog: pytest.LogCaptureFixture
) -> None:
    for at in range(1, 8):
        card = Card("GPU-a", util=77, samples=Samples(tuple((stamp, 0) for stamp in range(1, at + 1))))
        snapshot = read_scene(Scene(cards=(card, Card("GPU-b"))))
    assert reconcile(snapshot, ()).status is TickStatus.OK
    assert caplog.text.count(f"card GPU-a: {SAMPLES} is not believed") == 1
