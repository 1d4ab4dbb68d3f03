import logging

import pytest

from gua.daemon.journal import TickJournal, describe_troubles
from gua.model import (
    CardReading,
    CardTick,
    Evidence,
    Fault,
    FaultKind,
    LostSlot,
    Reason,
    State,
    Tick,
    TickStatus,
    Verdict,
)

FAILED = Fault("nvmlDeviceGetComputeRunningProcesses_v3", "UNKNOWN", FaultKind.FAILED)
UNSUPPORTED = Fault("nvmlDeviceGetPowerUsage", "NOT_SUPPORTED", FaultKind.UNSUPPORTED)


def tick(*cards: CardReading, status: TickStatus = TickStatus.OK, **more: Fault) -> Tick:
    judged = tuple(CardTick(card, Evidence(), Verdict(State.TRULY_IDLE)) for card in cards)
    return Tick(0, status, 30_000, judged, **more)


GOOD = tick(CardReading("GPU-1"))
BAD = tick(CardReading("GPU-1", faults={"compute_processes": FAILED, "power": UNSUPPORTED}))


def test_only_what_failed_is_a_trouble() -> None:
    assert describe_troubles(GOOD) == frozenset()
    assert describe_troubles(BAD) == {"card GPU-1: no compute_processes: UNKNOWN"}
    assert describe_troubles(tick(CardReading("GPU-1", absent=Reason.CARD_LOST))) == {"card GPU-1: card_lost"}
    strange = Tick(0, TickStatus.PARTIAL, 30_000, (), strangers=(LostSlot(3, FAILED),))
    assert describe_troubles(strange) == {"card 3, never seen before: card_lost: UNKNOWN"}
    assert describe_troubles(tick(status=TickStatus.UNRESPONSIVE)) == {"NVML does not answer"}
    stuck = Fault("nvmlInit", "NO_ANSWER", FaultKind.FAILED, "nvmlInit does not return")
    assert describe_troubles(tick(status=TickStatus.UNRESPONSIVE, fault=stuck)) == {"NVML does not answer"}


def test_a_driver_fault_is_one_trouble_whatever_the_number_of_cards() -> None:
    fault = Fault("nvmlInit_v2", "DRIVER_NOT_LOADED", FaultKind.FAILED, "Driver\x1b Not Loaded")
    cards = [CardReading(f"GPU-{n}", absent=Reason.DRIVER) for n in range(8)]
    assert describe_troubles(tick(*cards, status=TickStatus.ERROR, fault=fault)) == {
        "the driver cannot be used: DRIVER_NOT_LOADED: Driver\\x1b Not Loaded"
    }


def test_a_lasting_trouble_is_told_when_it_begins_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    journal = TickJournal()
    with caplog.at_level(logging.INFO):
        for number in range(2880):  # a day
            journal.ticked(BAD, number * 30_000)
        journal.ticked(GOOD, 2880 * 30_000)
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "card GPU-1: no compute_processes: UNKNOWN"),
        ("INFO", "no longer: card GPU-1: no compute_processes: UNKNOWN (after 2880 ticks)"),
    ]


def test_a_trouble_that_flickers_for_a_day_stays_a_short_log(caplog: pytest.LogCaptureFixture) -> None:
    journal = TickJournal()
    with caplog.at_level(logging.INFO):
        for number in range(2880):
            journal.ticked(BAD if number % 2 else GOOD, number * 30_000)
    assert sum(len(record.message) for record in caplog.records) < 30_000


def test_ticks_left_out_are_counted_for_each_reason_apart(caplog: pytest.LogCaptureFixture) -> None:
    journal = TickJournal()
    journal.skipped(0.0, 2.0, 3, 0)
    journal.skipped(0.0, 2.0, 4, 1000)
    journal.skipped(9.0, 0.1, 5, 2000)
    journal.skipped(0.0, 2.0, 1, 700_000)
    assert [record.message.partition("): ")[2] for record in caplog.records] == [
        "3 ticks left out",
        "5 ticks left out",
        "5 ticks left out",
    ]
