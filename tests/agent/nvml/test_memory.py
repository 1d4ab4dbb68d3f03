"""What "used" means, per driver and board."""

from __future__ import annotations

from typing import Callable

import pytest

from gua.model import CardReading, FaultKind, MemorySource
from gua.nvml.memory import UNIFIED_BOARDS
from tests.nvml_stub import GIB, MIB, Card, Error

ReadCard = Callable[[Card], CardReading]

V1, V2 = "nvmlDeviceGetMemoryInfo_v1", "nvmlDeviceGetMemoryInfo_v2"
BOTH = "nvmlDeviceGetMemoryInfo"
RESERVED = 308 * MIB


def test_driver_reserve_is_not_used_memory(read_card: ReadCard) -> None:
    reading = read_card(Card("GPU-a", memory_used=0, memory_reserved=RESERVED))
    assert (reading.memory_used_mb, reading.memory_source) == (0, MemorySource.V2)


@pytest.mark.parametrize(
    "error", ["FUNCTION_NOT_FOUND", "NOT_SUPPORTED", "ARGUMENT_VERSION_MISMATCH", "INVALID_ARGUMENT"]
)
def test_without_v2_the_v1_reading_is_taken_and_says_so(read_card: ReadCard, error: str) -> None:
    reading = read_card(Card("GPU-a", memory_used=GIB, memory_reserved=RESERVED, rules=(Error(V2, error),)))
    assert (reading.memory_used_mb, reading.memory_source) == (1024 + 308, MemorySource.V1)
    assert "memory" not in reading.faults


def test_card_that_failed_at_v2_is_not_asked_v1(read_card: ReadCard) -> None:
    reading = read_card(Card("GPU-a", rules=(Error(V2, "UNKNOWN"),)))
    assert (reading.memory_used_mb, reading.memory_source) == (None, None)
    assert reading.faults["memory"].error == "UNKNOWN"


def test_v1_that_fails_too_leaves_its_own_fault(read_card: ReadCard) -> None:
    reading = read_card(Card("GPU-a", rules=(Error(V2, "FUNCTION_NOT_FOUND"), Error(V1, "GPU_IS_LOST"))))
    assert reading.faults["memory"].error == "GPU_IS_LOST"


@pytest.mark.parametrize("board", ["NVIDIA GB10", "NVIDIA-GB10", "NVIDIA Thor", "Orin (nvgpu)", "NVIDIA Tegra X1"])
def test_unified_board_without_memory_reading_says_so(read_card: ReadCard, board: str) -> None:
    reading = read_card(Card("GPU-a", name=board, memory_total=None))
    assert reading.memory_source is MemorySource.UNIFIED
    assert (reading.memory_total_mb, reading.memory_used_mb) == (None, None)
    assert reading.faults["memory"].kind is FaultKind.UNSUPPORTED


def test_zero_total_is_a_board_without_memory_of_its_own(read_card: ReadCard) -> None:
    reading = read_card(Card("GPU-a", name="NVIDIA GB10", memory_total=0, memory_reserved=0))
    assert (reading.memory_source, reading.memory_total_mb) == (MemorySource.UNIFIED, None)
    assert reading.faults["memory"].error == "ZERO_TOTAL"


def test_discrete_card_without_memory_reading_stays_unknown(read_card: ReadCard) -> None:
    reading = read_card(Card("GPU-a", name="NVIDIA A40-8Q", memory_total=None))
    assert (reading.memory_source, reading.memory_used_mb) == (None, None)
    assert reading.faults["memory"].error == "NOT_SUPPORTED"


def test_failing_unified_board_is_no_answer_by_design(read_card: ReadCard) -> None:
    reading = read_card(Card("GPU-a", name="NVIDIA GB10", rules=(Error(BOTH, "UNKNOWN"),)))
    assert reading.memory_source is None
    assert reading.faults["memory"].kind is FaultKind.FAILED


@pytest.mark.parametrize("board", ["NVIDIA GB100", "NVIDIA GB200", "NVIDIA H100 80GB HBM3", "NVIDIA GH200 480GB"])
def test_boards_with_memory_of_their_own_are_not_in_the_pattern(board: str) -> None:
    assert UNIFIED_BOARDS.search(board) is None
