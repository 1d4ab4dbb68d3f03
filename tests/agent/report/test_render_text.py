"""The agent's report for people, whole and in its odd cases."""

from __future__ import annotations

from typing import Any

import pytest
from wcwidth import wcswidth

from gua.report.render_text import render_report
from tests.documents import RULE, card, now, report, states, user
from tests.golden import check_golden, load


def test_report_whole_screen_is_the_golden_file() -> None:
    check_golden("agent_report.txt", render_report(load("agent_report.json")))


def test_report_without_block_characters_is_pure_ascii() -> None:
    text = render_report(load("agent_report.json"), unicode=False, width=72)
    check_golden("agent_report_ascii.txt", text)
    assert text.isascii()


@pytest.mark.parametrize("width", [60, 61, 72, 80, 100, 120, 200])
def test_report_fits_the_width_it_was_given(width: int) -> None:
    text = render_report(load("agent_report.json"), width=width)
    assert max(map(wcswidth, text.splitlines())) <= width


@pytest.mark.parametrize(("width", "drawn"), [(60, False), (80, True)])
def test_marks_of_bars_are_explained_where_there_are_bars(width: int, drawn: bool) -> None:
    cards = render_report(load("agent_report.json"), width=width).partition("3. Cards\n")[2].partition("\n4. ")[0]
    assert ("▒ idle-held" in " ".join(cards.split())) is drawn
    assert ("No room here for split." in cards) is not drawn


def test_report_colours_only_when_asked() -> None:
    document = load("agent_report.json")
    assert "\x1b" not in render_report(document)
    assert "\x1b[1m" in render_report(document, colour=True)


def test_report_escapes_what_workloads_chose() -> None:
    document = report(
        [card("GPU-\x1b[2J", states(3600), name="NVIDIA \x07bell")],
        [user("we\x1b[31mird\nname", states(3600))],
        findings=[{"id": "x", "severity": "warn", "card": None, "text": "evil\r\x1b[2J"}],
    )
    text = render_report(document)
    assert "\x1b" not in text
    assert "\\x1b[31mird\\x0aname" in text


def test_report_without_any_card_says_that_there_is_no_history_yet() -> None:
    text = render_report(report([]))
    assert "No history yet" in text
    assert "0 %" not in text


def test_report_before_history_began_says_so_instead_of_zeros() -> None:
    document = report([card("GPU-a", states(), expected_card_s=0.0, unobserved_card_s=0.0)])
    assert "begins later" in render_report(document)


def test_report_unknown_is_a_dash_and_zero_a_zero() -> None:
    lost = states(unknown=14400)
    text = render_report(report([card("GPU-a", lost, index=None, now=now("unknown", reason="card_lost"))]))
    (row,) = [line for line in text.splitlines() if "GPU-a" in line]
    assert row.split()[0] == "-"
    assert row.split()[-5:] == ["-", "-", "-", "100%", "4.00"]
    assert "active      -" in text


def test_report_of_stale_data_says_so_at_its_top_and_once() -> None:
    stale = {"id": "stale", "severity": "warn", "card": None, "text": "the newest tick is 40 min old"}
    text = render_report(report([card("GPU-a", states(3600))], findings=[stale]))
    assert text.splitlines()[2] == "STALE: the newest tick is 40 min old"
    assert text.count("40 min") == 1


def test_report_history_that_begins_inside_the_window_is_said() -> None:
    window = {"since": "2026-03-02T08:00:00Z", "until": "2026-03-02T12:00:00Z"}
    begun = {"history_begins": "2026-03-02T09:30:00Z"}
    text = render_report(report([card("GPU-a", states(3600))], window={**window, **begun}, tz="Asia/Seoul"))
    assert "History begins 2026-03-02 18:30" in text
    assert "2026-03-02 17:00 to 2026-03-02 21:00 (Asia/Seoul)" in text


def test_report_in_a_zone_this_host_does_not_know_shows_utc() -> None:
    assert "2026-03-02 12:00 (UTC)" in render_report(report([card("GPU-a", states(3600))], tz="Mars/Olympus"))


def test_report_prints_every_rule_in_force() -> None:
    rules: list[dict[str, Any]] = [RULE, {**RULE, "active_util_pct": 5}]
    text = " ".join(render_report(report([card("GPU-a", states(3600))], rules=rules)).split())
    assert "active from 10 %" in text
    assert "active from 5 %" in text
    assert "changed within the window" in text


def test_report_says_how_many_users_it_left_out() -> None:
    users = [user(f"u{number:02d}", states(held=60)) for number in range(18)]
    assert "and 3 more" in render_report(report([card("GPU-a", states(held=3600))], users))


def test_report_marks_a_retired_card() -> None:
    text = render_report(report([card("GPU-a", states(3600), retired_at="2026-03-02T09:00:00Z")]))
    assert "x: retired" in text
