"""The small tables: one line a row for programs, no wider than the screen for people."""

from __future__ import annotations

import pytest
from wcwidth import wcswidth

from gua_fleet.render import Cell, table

HEADERS = ("host", "cards", "why")
ROWS: list[tuple[Cell, ...]] = [
    ("gpu01", 0, "no agent at /opt/gua/current/bin/gua or on PATH: deploy it with ansible-playbook deploy.yml"),
    ("gpu02.cluster.example.org", None, "x" * 200),
    ("\x1b[2J名前", 8, "two\nlines"),
]


def test_table_for_programs_has_one_line_a_row_and_shows_zero_and_unknown_apart() -> None:
    lines = table(HEADERS, ROWS).splitlines()
    assert len(lines) == 2 + len(ROWS)
    assert [line.split()[1] for line in lines[2:]] == ["0", "-", "8"]
    assert "\\x1b[2J" in lines[4]
    assert "two\\x0alines" in lines[4]


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_table_for_people_is_no_wider_than_the_screen_and_loses_no_word(columns: int) -> None:
    text = table(HEADERS, ROWS, columns)
    assert max(map(wcswidth, text.splitlines())) <= columns
    assert {"deploy", "gpu01", "ansible-playbook", "PATH:"} <= set(text.split())


def test_headers_of_narrow_figures_go_on_in_further_lines_above_the_rule() -> None:
    headers = ("host", "newest sample", "last day seen", "cards", "version", "enrolled")
    lines = table(headers, [("gpu01", "34 min ago", "98 %", 8, "0.1.0", "no")], 46).splitlines()
    assert max(map(wcswidth, lines)) <= 46
    rule = next(place for place, line in enumerate(lines) if set(line) == {"-"})
    assert sorted(" ".join(lines[:rule]).split()) == sorted(" ".join(headers).split())
    assert {"34", "min", "ago"} <= set(" ".join(lines[rule + 1 :]).split())


def test_table_that_cannot_fit_is_still_a_table() -> None:
    assert max(map(wcswidth, table(HEADERS, ROWS, 10).splitlines())) < 60


def test_table_without_rows_is_its_headers() -> None:
    assert table(HEADERS, [], 80).splitlines()[0] == "host  cards  why"


def test_table_keeps_the_cure_at_the_end_of_a_long_reason() -> None:
    reason = "its key is not the one on file: " + "x" * 200 + " run `ssh-keygen -R gpu1`"
    assert "`ssh-keygen -R gpu1`" in table(HEADERS, [("gpu1", 8, reason)])
    assert "x" * 500 not in table(HEADERS, [("gpu1", 8, "x" * 1000)])
