"""The picture: what stands in it, and that it fits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.present import Knowledge, fleet_now
from gua_fleet.top.board import Board
from gua_fleet.top.frame import Picture, Row, compose, in_order, page_of, plain
from gua_fleet.top.terminal import parse_keys
from tests.documents import card, now, report, states

STATES = ("active", "idle-held", "truly-idle", "unknown")


def result(name: str, *shown: str, at: str = "2026-03-02T11:59:50Z") -> HostResult:
    cards = [card(f"GPU-{name}-{n}", states(), index=n, now=now(state, at=at)) for n, state in enumerate(shown)]
    return HostResult(Host(name, name), Outcome.OK, document=report(cards, store_id=name))


def rows(*results: HostResult, **row: Any) -> list[Row]:
    return [Row(host, **{"answer_s": 0.0, **row}) for host in fleet_now(results)]


def text(found: list[Row], **more: Any) -> list[str]:
    picture = {"picture": Picture(unicode=False), "columns": 80, "lines": None, "clock": "12:00:00", **more}
    return plain(compose(found, **picture)).splitlines()


def test_a_cell_for_each_card_and_a_count_of_each_state() -> None:
    lines = text(rows(result("a", *STATES), result("b", "active")))
    assert lines[1] == "5 cards  2 active  1 idle-held  1 truly-idle  1 unknown"
    assert lines[3].split()[:2] == ["a", "#=.?"]


def test_a_state_is_shown_as_one_of_now_only_while_its_sample_is_fresh() -> None:
    """The sample was 20 s old when the answer was made, and three intervals are 90 s."""
    assert text(rows(result("a", "truly-idle"), answer_s=70.0))[1].endswith("1 truly-idle  0 unknown")
    old = text(rows(result("a", "truly-idle"), answer_s=71.0))
    assert old[1].endswith("0 truly-idle  0 unknown  1 not known now")
    assert old[3].split()[1] == "(.)"
    assert "1 min" in old[3]


def test_a_host_that_fails_keeps_its_line_with_reason_and_age() -> None:
    line = text(rows(result("a", "active"), answer_s=300.0, trouble="timeout:exec: no answer"))[3]
    assert line == "a     (#)    answered 5 min ago; timeout:exec: no answer"


def test_board_keeps_the_last_answer_of_a_host_that_fails_and_takes_the_next() -> None:
    clock = [0.0]
    first, gone = result("a", "active"), HostResult(Host("a", "a"), Outcome.UNREACHABLE, "no route")
    board = Board([first.host, Host("b", "b")], Knowledge(), monotonic_s=lambda: clock[0])
    assert [row.asked for row in board.rows()] == [False, False]
    board.note(first)
    clock[0] = 12.0
    board.note(gone)
    row = board.rows()[0]
    assert (row.trouble, row.answer_s, len(row.host.cards)) == ("unreachable: no route", 12.0, 1)
    board.note(result("a", "active", "active"))
    row = board.rows()[0]
    assert (row.trouble, row.answer_s, len(row.host.cards)) == (None, 0.0, 2)
    board.note(HostResult(Host("a", "a"), Outcome.NO_GPU, "no card"))
    assert board.rows()[0].host.cards == ()


@given(
    st.integers(1, 200),
    st.integers(1, 60),
    st.lists(st.lists(st.sampled_from(STATES), max_size=70), min_size=1, max_size=30),
    st.integers(0, 40),
    st.booleans(),
    st.text(max_size=30),
)
def test_no_picture_is_wider_or_higher_than_the_terminal(
    columns: int, height: int, fleet: list[list[str]], offset: int, unicode: bool, word: str
) -> None:
    found = rows(*(result(f"h{n:03d}", *shown) for n, shown in enumerate(fleet)))
    picture = Picture(offset=offset, unicode=unicode)
    lines = compose(found, picture, columns=columns, lines=height, clock="12:00:00", note=word)
    assert len(lines) <= height
    assert all(wcswidth("".join(part for part, _ in line)) <= columns for line in lines)
    if height >= 5 and columns >= 80:
        assert sum(line[:1] == "h" for line in plain(lines[3:-1]).splitlines()) == min(len(fleet), page_of(height))


def test_more_hosts_than_lines_are_scrolled_to_and_counted() -> None:
    found = rows(*(result(f"h{n:02d}", "active") for n in range(50)))
    picture, page = Picture(unicode=False), page_of(24)
    assert "1-20 of 50" in text(found, lines=24)[-1]
    for key, first in (("pgdn", 20), ("down", 21), ("end", 30), ("pgdn", 30), ("pgup", 10), ("home", 0), ("up", 0)):
        picture = picture.after(key, 50, page)
        assert text(found, picture=picture, lines=24)[3].startswith(f"h{first:02d}"), key


def test_a_small_terminal_still_tells_every_figure_and_the_way_out() -> None:
    found = rows(*(result(f"h{n:03d}", *STATES) for n in range(300)))
    lines = text(found, columns=40, lines=10)
    assert lines[0] == "12:00:00  300 hosts, 300 answered"
    assert lines[1] == "1200 #300 =300 .300 ?300"
    assert lines[-1].startswith("q: quit  s: by name  1-6 of 300")
    last = text(found, columns=40, lines=10, picture=Picture(unicode=False, offset=294))
    assert (last[3].split()[0], last[8].split()[0]) == ("h294", "h299")


def test_a_picture_that_is_no_screen_tells_what_the_marks_mean_and_no_keys() -> None:
    found = rows(result("a", "active"))
    assert text(found, lines=None)[-1] == "# active  = idle-held  . truly-idle  ? unknown"
    assert text(found, lines=9)[-1] == "q: quit  s: by name  # active  = idle-held  . truly-idle  ? unknown"


def test_a_host_without_a_card_did_answer_and_one_left_alone_did_not() -> None:
    bare, away = HostResult(Host("a", "a"), Outcome.NO_GPU, "x"), HostResult(Host("b", "b"), Outcome.MAINTENANCE, "y")
    assert text(rows(bare, away))[0] == "gua-fleet top  12:00:00  2 hosts, 1 answered"


def test_orders() -> None:
    found = rows(result("a", "active"), result("b", "idle-held"), result("c", "truly-idle", "truly-idle"))
    found.append(Row(fleet_now([result("d", "active")])[0], trouble="down"))
    order = Picture(unicode=False)
    seen = []
    for _ in range(4):
        seen.append("".join(row.host.name for row in in_order(found, order.order)))
        order = order.after("s", 4, 20)
    assert seen == ["abcd", "bacd", "cabd", "dabc"]
    assert order.order == "name"


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A\x1b[Bs", ["up", "down", "s"]),
        (b"\x1b[5~\x1b[6~\x1bOB", ["pgup", "pgdn", "down"]),
        (b"\x1b[1;5Cq", []),  # a key nobody asked for must not be taken for its last letter
        (b" jk", ["pgdn", "down", "up"]),
        (b"\xff\xfe", []),
    ],
)
def test_keys(raw: bytes, keys: list[str]) -> None:
    assert parse_keys(raw) == keys
