"""Tables that fit where they are shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcswidth

from gua.report.cells import Look
from gua.report.layout import GAP, fit_table
from gua.report.render_rows import fitted_lines
from gua.report.section import Bar, Table

SPLIT = Bar({"active": 1.0})
PLAIN = Look()


def table(name: str, *, spare: tuple[int, ...] = ()) -> Table:
    return Table(("#", "name", "split", "hours"), "rllr", (("0", name, SPLIT, "24.0"),), elastic=(1,), spare=spare)


def width_of(given: Table, columns: int) -> int:
    return max(map(wcswidth, fitted_lines(given, columns, PLAIN)))


def test_a_bar_is_readable_first_then_names_are_whole_then_it_grows() -> None:
    name = "twenty characters it"
    fixed = 1 + 5 + 3 * GAP
    for columns, name_width, bar_width in [
        (fixed + 8 + 14, 8, 14),
        (fixed + 20 + 14, 20, 14),
        (fixed + 20 + 20, 20, 20),
        (200, 20, 32),
    ]:
        _, fitted_name, bar, _ = fit_table(table(name), columns, PLAIN).rows[0]
        assert (len(fitted_name), len(bar)) == (name_width, bar_width)


def test_spare_columns_go_in_their_order_and_only_where_they_must() -> None:
    wide = table("x" * 30, spare=(2, 0))
    least = 1 + 8 + 8 + 5 + 3 * GAP
    assert fit_table(wide, least, PLAIN).headers == ("#", "name", "split", "hours")
    assert fit_table(wide, least - 1, PLAIN).headers == ("#", "name", "hours")
    assert fit_table(wide, 1 + 8 + 5 + 2 * GAP - 1, PLAIN).headers == ("name", "hours")


def test_columns_that_had_no_room_are_named_below_the_table() -> None:
    wide = table("x" * 30, spare=(2, 0))
    assert not fitted_lines(wide, 80, PLAIN)[-1].startswith("No room")
    assert fitted_lines(wide, 22, PLAIN)[3:] == ["No room here for", "split."]
    assert " ".join(fitted_lines(wide, 14, PLAIN)[3:]) == "No room here for split, #."


@settings(max_examples=50)
@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), max_size=60), st.integers(34, 200))
def test_no_line_is_wider_than_the_columns_whatever_the_name(name: str, columns: int) -> None:
    if wcswidth(name) >= 0:
        assert width_of(table(name), columns) <= columns


@pytest.mark.parametrize(("columns", "shown"), [(60, "深層学習実験"), (28, "深層学.")])
def test_wide_characters_take_two_columns(columns: int, shown: str) -> None:
    assert fit_table(table("深層学習実験"), columns, PLAIN).rows[0][1] == shown
    assert width_of(table("深層学習実験"), columns) <= columns


def test_a_line_in_colours_is_the_same_line_without_them() -> None:
    split = Table(("a", "b", "c"), "rll", (("7", Bar({"active": 1.0, "unobserved": 2.0, "unknown": 1.0}), "x"),))
    plain, painted = (fitted_lines(split, 40, Look(colour=colour)) for colour in (False, True))
    assert painted[2] != plain[2]
    assert re.sub("\x1b\\[[0-9]*m", "", painted[2]) == plain[2]
    assert painted[:2] == plain[:2]


def test_what_was_not_seen_takes_its_part_of_a_bar() -> None:
    split = Table(("a", "b", "c"), "llr", (("x", Bar({"active": 1.0, "unobserved": 1.0}), "7"),))
    for look in (PLAIN, Look(colour=True)):
        line = re.sub("\x1b\\[[0-9]*m", "", fitted_lines(split, 20, look)[2])
        assert line == "x  " + "█" * 7 + " " * 7 + "  7"


def test_cells_stay_as_they_are() -> None:
    rows = (("007", "1e5"), ("1", "x"))
    assert fitted_lines(Table(("number", "name"), "rl", rows), 80, PLAIN) == [
        "number  name",
        "------------",
        "   007  1e5",
        "     1  x",
    ]
