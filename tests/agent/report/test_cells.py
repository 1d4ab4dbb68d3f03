"""Single figures: unknown is not zero, and small is not nothing."""

from __future__ import annotations

from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from gua.report.cells import (
    Look,
    bar,
    bar_legend,
    clock_time,
    count,
    equivalent_cards,
    fit,
    hours,
    model,
    percent,
    short_uuid,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (1.0, "<0.01"),
        (18.0, "0.01"),
        (3600.0, "1.00"),
        (35_999.0, "10.0"),
        (4_446_000.0, "1,235.0"),
    ],
)
def test_hours_shows_unknown_zero_small_and_large(seconds: Optional[float], text: str) -> None:
    assert hours(seconds) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 0, "-"), (0, 5, "0 %"), (1, 1000, "<1 %"), (31, 100, "31 %"), (999, 1000, ">99 %"), (7, 7, "100 %")],
)
def test_percent_never_rounds_something_to_nothing_or_all(part: float, whole: float, text: str) -> None:
    assert percent(part, whole) == text


def test_count_of_nothing_known_is_a_dash() -> None:
    assert (count(None), count(0), count(12345)) == ("-", "0", "12,345")


def test_model_and_uuid_are_shortened_to_what_people_say() -> None:
    assert model("NVIDIA GeForce RTX 4090") == "RTX 4090"
    assert model("Tesla V100") == "Tesla V100"
    assert short_uuid("GPU-1a2b3c4d-aaaa-bbbb") == "GPU-1a2b3c4d"


def test_fit_counts_terminal_columns_not_characters() -> None:
    assert fit("김철수", 6) == "김철수"
    assert fit("김철수", 5) == "김철."
    assert fit("alice", 4) == "ali."


def test_bar_splits_by_amount_and_leaves_the_unseen_blank() -> None:
    amounts = {"active": 2.0, "idle-held": 1.0, "truly-idle": 0.0, "unknown": 0.0, "unobserved": 1.0}
    assert bar(amounts, 8, Look()) == "████▒▒  "
    assert bar(amounts, 8, Look(unicode=False)) == "####==  "
    assert bar({}, 4, Look()) == "    "


@given(st.lists(st.floats(0, 1e9), min_size=5, max_size=5), st.integers(1, 40))
def test_bar_always_fills_its_width(amounts: list[float], width: int) -> None:
    kinds = ("active", "idle-held", "truly-idle", "unknown", "unobserved")
    assert wcswidth(bar(dict(zip(kinds, amounts)), width, Look())) == width


def test_legend_without_blocks_is_ascii_but_for_its_no_break_spaces() -> None:
    assert bar_legend(Look(unicode=False)).replace("\N{NO-BREAK SPACE}", " ").isascii()


def test_clock_time_without_a_zone_is_utc() -> None:
    assert clock_time("2026-03-02T08:00:59Z", None) == "2026-03-02 08:00"


def test_equivalent_cards_is_the_share_times_the_cards() -> None:
    assert equivalent_cards(1800, 7200, 8) == "2.0"
    assert equivalent_cards(0, 0, 8) == "-"
