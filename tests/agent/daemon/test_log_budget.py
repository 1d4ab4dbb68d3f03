import io
import logging
from collections.abc import Iterator

import pytest

from gua.daemon.journal import TickJournal
from gua.daemon.log_budget import LogBudget
from gua.model import CardReading, CardTick, Evidence, Fault, FaultKind, State, Tick, TickStatus, Verdict
from tests.agent.fakes import FakeClock

DAY_TICKS = 2880
READINGS = ("util", "power")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def log(clock: FakeClock) -> Iterator[io.StringIO]:
    """What the daemon would write to its log."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(LogBudget(clock.monotonic_s))
    logger = logging.getLogger("gua")
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False  # the test runner need not keep what the budget holds back
    yield written
    logger.removeHandler(handler)
    logger.setLevel(before[0])
    logger.propagate = before[1]


def tick(number: int, *, stable: bool) -> Tick:
    """Four cards of which everything fails, with the same words or with others every time."""
    error = "UNKNOWN" if stable else f"ERROR_{number}"
    faults = {reading: Fault("call", error, FaultKind.FAILED) for reading in READINGS}
    cards = [CardReading(f"GPU-{n:08d}-1111-2222-3333-444444444444", n, faults=faults) for n in range(4)]
    judged = tuple(CardTick(card, Evidence(), Verdict(State.UNKNOWN)) for card in cards)
    return Tick(0, TickStatus.PARTIAL, 30_000, judged)


@pytest.mark.parametrize("stable", [True, False])
def test_a_day_in_which_everything_fails_is_less_than_100_kb_of_log(
    log: io.StringIO, clock: FakeClock, stable: bool
) -> None:
    journal = TickJournal()
    for number in range(DAY_TICKS):
        journal.ticked(tick(number, stable=stable), round(clock.monotonic_s() * 1000))
        journal.lost(OSError(f"{'x' * 300}{0 if stable else number}"), round(clock.monotonic_s() * 1000))
        clock.sleep_s(30.0)
    assert 1_000 < len(log.getvalue()) < 100_000


def test_after_quiet_hours_the_first_lines_of_a_new_trouble_all_come(log: io.StringIO, clock: FakeClock) -> None:
    logger = logging.getLogger("gua.test")
    for number in range(1000):
        logger.warning("trouble %d", number)
    assert len(log.getvalue().splitlines()) == 40
    clock.sleep_s(4 * 3600.0)
    for number in range(40):
        logger.warning("other %d", number)
    lines = log.getvalue().splitlines()
    assert len(lines) == 80
    assert lines[40].endswith("other 0 (960 other lines were left out)")
    assert lines[41].endswith("other 1")


def test_texts_that_differ_every_time_do_not_fill_the_memory() -> None:
    journal = TickJournal()
    for number in range(5000):
        journal.lost(OSError(str(number)), number * 30_000)
    assert len(journal._said_ms) <= 1000
