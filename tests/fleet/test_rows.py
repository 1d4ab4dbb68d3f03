"""The fleet's tables as data, and the whole screen."""

from __future__ import annotations

import json
import re

import pytest
from wcwidth import wcswidth

from gua_fleet.model import Document, Host, HostResult, Outcome
from gua_fleet.render_html import render_html
from gua_fleet.render_json import render_json
from gua_fleet.render_table import render_fleet
from gua_fleet.rows import Table, energy_table, group_table, headline_tables, host_table, model_table, user_table
from gua_fleet.rows_now import excuse_lines, free_table, free_text, hold_table, scheduler_lines
from gua_fleet.rows_text import answered_text, coverage_text, headline_text
from gua_fleet.short_names import short_names
from tests.documents import SINCE, card, now, report, states, user
from tests.fleet.merging import answer, merge
from tests.golden import check_golden, load


def without_unit(table: Table) -> list[str]:
    """Headers of the columns with an amount that neither they nor the amount itself give a unit."""
    told = re.compile(r"\b(h|hours|kWh|GB)\b|hours|equivalent cards")
    return [
        header
        for header, cells in zip(table.headers, zip(*table.rows, strict=True), strict=True)
        if any(re.fullmatch(r"[<>]?[\d,]*\.\d+\*?", cell) for cell in cells) and not told.search(header)
    ]


@pytest.fixture
def fleet() -> Document:
    """gpu01: the agent's golden document. gpu02: one H card active, one idle, under a scheduler. Two are silent.

    active 3 + 4 = 7 GPU-hours, idle-held 5 + 0 = 5, truly-idle 5 + 4 = 9, unknown 2.5, expected 16 + 8 + 8 x 4 = 56.
    """
    return merge(
        answer("gpu01", load("agent_report.json"), groups=("vision",)),
        answer("gpu02", load("fleet_second.json"), groups=("vision", "shared"), scheduler="slurm"),
        HostResult(
            Host("gpu03", "gpu03", cards=8, groups=("shared",)),
            Outcome.TIMEOUT,
            detail="no answer within 20 s: is the host up, is port 22 open?",
            stage="connect",
        ),
        HostResult(Host("gpu04", "gpu04"), Outcome.AGENT_MISSING, detail="no agent there: deploy it"),
    )


def test_fleet_whole_screen_is_the_golden_file(fleet: Document) -> None:
    check_golden("fleet_report.txt", render_fleet(fleet))


def test_fleet_without_block_characters_is_ascii_and_fits(fleet: Document) -> None:
    text = render_fleet(fleet, unicode=False, colour=False)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("unicode", [True, False])
def test_fleet_on_a_narrow_screen_leaves_columns_out_and_says_which(fleet: Document, unicode: bool) -> None:
    lines = render_fleet(fleet, width=60, unicode=unicode).splitlines()
    assert max(map(wcswidth, lines)) <= 60
    (headers,) = (line.split() for line in lines if line.startswith("host ") and "outcome" in line)
    assert headers == ["host", "outcome", "cards", "active", "idle-held", "seen"]
    assert "No room here for truly-idle, unknown." in lines
    assert render_fleet(fleet, width=40, unicode=unicode).splitlines() == lines
    assert "No room" not in render_fleet(fleet, width=80)


def test_fleet_fits_its_default_width(fleet: Document) -> None:
    assert max(map(wcswidth, render_fleet(fleet).splitlines())) <= 100


def test_fleet_json_is_the_document(fleet: Document) -> None:
    text = render_json(fleet)
    assert text.isascii()
    assert json.loads(text) == fleet


def test_headline_has_points_bounds_and_what_was_not_seen(fleet: Document) -> None:
    whole, slices = headline_tables(fleet)
    rows = {row[0]: row[1:] for row in whole.rows}
    # 7 of 17 known hours; 7 of 52 expected, up to 42 of 52 if all of 2.5 unknown and 32.5 unseen had been active
    assert rows["active"] == ("41 % (13-81 %)", "7.00", "2.1")
    assert rows["unknown"][1] == "2.50"
    assert rows["not seen"] == ("62 % of expected", "32.5", "-")
    # the one slice: idle all of its 4 hours, and no card's equivalent
    assert slices.rows[2] == ("truly-idle", "100 %", "4.00")


def test_answered_text_names_every_silent_host_and_its_cards(fleet: Document) -> None:
    assert answered_text(fleet) == (
        "2 of 4 hosts reported. No answer: gpu03 (timeout:connect, 8 cards); "
        "gpu04 (agent-missing, its cards are not known)."
    )


def test_answered_text_tells_failures_from_hosts_with_nothing_to_report() -> None:
    document = merge(
        HostResult(Host("cpu01", "x", cards=8), Outcome.NO_GPU),
        HostResult(Host("new", "x", cards=1), Outcome.NO_HISTORY),
        HostResult(Host("down", "x"), Outcome.UNREACHABLE),
        HostResult(Host("late1", "x", cards=8), Outcome.TIMEOUT, stage="auth"),
        HostResult(Host("late2", "x", cards=8), Outcome.TIMEOUT, stage="auth"),
        HostResult(Host("b c", "b c"), Outcome.SKIPPED),
        HostResult(Host("off", "x", cards=2), Outcome.MAINTENANCE),
    )
    assert answered_text(document) == (
        "0 of 7 hosts reported. "
        "No answer: down (unreachable, its cards are not known); late1, late2 (timeout:auth, 8 cards each). "
        "Not asked: b c (skipped, its cards are not known); off (maintenance, 2 cards). "
        "Nothing to report: cpu01 (no-gpu); new (no-history, 1 card)."
    )


def test_host_table_has_every_host_and_dashes_for_what_is_not_known(fleet: Document) -> None:
    rows = host_table(fleet).rows
    assert [row[0] for row in rows] == ["gpu01", "gpu02", "gpu03", "gpu04"]
    assert rows[2][2:] == ("8", "-", "-", "-", "-", "-")
    assert rows[3][2] == "-"


def test_model_table_puts_slices_under_their_model_and_silent_cards_last(fleet: Document) -> None:
    rows = [row[:2] for row in model_table(fleet).rows]
    place = next(place for place, row in enumerate(rows) if row[0] == "H100 80GB HBM3")
    # gpu01 has one card cut into slices, gpu02 two whole ones
    assert rows[place : place + 2] == [("H100 80GB HBM3", "3"), ("- MIG 1g.10gb", "1")]
    assert rows[-1] == ("(model not known)", "8")


def test_user_table_sorts_by_idle_held_and_counts_who_was_left_out() -> None:
    users = [user(f"u{number:02d}", states(held=60.0 * number)) for number in range(25)]
    table = user_table(merge(answer("a", report([card("GPU-a", states(held=14400))], users))))
    assert table.rows[0][0] == "u24"
    assert (len(table.rows), table.more) == (20, 5)


def test_group_table_counts_the_cards_of_silent_hosts(fleet: Document) -> None:
    rows = {row[0]: row for row in group_table(fleet).rows}
    assert rows["shared"][:3] == ("shared", "2", "10")


def test_free_table_joins_the_cards_of_one_kind_on_one_host() -> None:
    document = report([card(f"GPU-{index}", states(idle=60), index=index) for index in (1, 2, 4, None)])
    (row,) = free_table(merge(answer("a", document))).rows
    assert row == ("a", "H100 80GB HBM3", "80 GB", "4", "1-2, 4, -", "1 h 00 min")


def test_free_text_names_places_and_never_speaks_for_hosts_that_did_not_answer() -> None:
    idle = report([card(f"GPU-{index}", states(idle=60), index=index) for index in (0, 2, 3)])
    busy = report([card("GPU-b", states(60), now=now("active"))], store_id="s2")
    silent = HostResult(Host("c", "c"), Outcome.UNREACHABLE)
    assert free_text(merge(answer("gpu03", idle), answer("b", busy))) == "3 cards free: gpu03:0,2-3"
    assert free_text(merge(answer("b", busy))) == "No card is free now."
    assert free_text(merge(answer("b", busy), silent)) == "No card is free on the hosts that reported."
    assert free_text(merge(silent)) == "Which cards are free is not known."


@pytest.mark.parametrize("silent", [False, True])
def test_no_free_card_is_said_only_as_far_as_it_is_known(silent: bool) -> None:
    busy = answer("b", report([card("GPU-b", states(60), now=now("active"))], store_id="s2"))
    hosts = [busy, HostResult(Host("c", "c"), Outcome.UNREACHABLE)] if silent else [busy]
    section = render_fleet(merge(*hosts)).partition("Free now\n")[2].splitlines()
    assert section[0] == ("No card is free on the hosts that reported." if silent else "No card is free now.")


def test_fleet_of_slices_only_has_a_headline_of_its_own() -> None:
    mig = {"parent_uuid": "GPU-p", "profile": "1g.10gb"}
    document = merge(answer("a", report([card("MIG-1", states(7200, 7200), mig=mig)])))
    assert [table.title for table in headline_tables(document)] == ["MIG slices, apart"]
    assert headline_text(document) == "50 % active, 50 % held without work, 0 % free"
    assert coverage_text(document).startswith("Seen: 4.00 of 4.00 expected slice-hours (100 %).")
    page = render_html(document)
    assert "2.00 slice-hours" in page
    assert "GPU-hours" not in page.partition("<h2>")[0]


def test_holds_now_are_those_that_last_with_the_longest_idle_first_and_excuses_marked() -> None:
    base = {"card": "GPU-a", "pid": 1, "since": "2026-03-02T10:00:10Z", "until": None, "memory_mb": 8192}
    holds = [
        base | {"user": "alice", "process": "train", "states": states(3600)},
        base | {"user": "uid:7", "process": "a\x1bb", "states": states(held=7200), "memory_mb": None},
        base | {"user": "gone", "process": "x", "states": states(held=9000), "until": "2026-03-02T11:00:00Z"},
    ]
    document = merge(answer("a", report([card("GPU-a", states(3600), index=5)], holds=holds)))
    document["holds"][1]["excuse"] = "paper"
    assert hold_table(document).rows == (
        ("uid:7@a", "a", "5", "a\\x1bb", "-", "2 h 00 min", "2.00*"),
        ("alice", "a", "5", "train", "8.0", "2 h 00 min", "0"),
    )
    assert excuse_lines(document) == ["* excused (1 hold), counted all the same: paper"]


def test_scheduler_lines_say_why_idle_cards_are_not_free(fleet: Document) -> None:
    assert scheduler_lines(fleet) == ["gpu02: 1 idle, given out by slurm, so not counted as free"]


def test_fleet_of_long_names_still_fits_and_says_all_of_them_where_it_matters() -> None:
    name = "gpu-compute-node-0017.cluster.example.org"
    document = report(
        [card(f"GPU-{index}", states(idle=14400), index=index, name="NVIDIA " + "H" * 40) for index in range(16)],
        [user("u" * 64, states(held=1e7))],
    )
    silent_host = HostResult(Host(f"{name}.", "x", groups=("g" * 40,)), Outcome.HOST_KEY_UNKNOWN, detail="d " * 300)
    text = render_fleet(merge(answer(name, document, groups=("g" * 40,)), silent_host))
    assert max(map(wcswidth, text.splitlines())) <= 100
    assert f"{name}.: host-key-unknown: d" in text


@pytest.mark.parametrize(
    ("names", "cells"),
    [
        (["gpu1", "gpu2"], ["gpu1", "gpu2"]),
        (["node-1.cluster.example.org", "node-2.cluster.example.org"], ["node-1", "node-2"]),
        (["node-1.cluster.example.org", "login"], ["node-..e.org", "login"]),
        (["a-very-long-rack-01", "a-very-long-rack-02"], ["a-ver..ck-01", "a-ver..ck-02"]),
        (["r1-and-a-long-name-of-it", "r2-and-a-long-name-of-it"], ["r1-an..of-it", "r2-an..of-it"]),
        (["abcdef1-long-tail-x", "abcdef2-long-tail-x"], ["abcdef1-lon.", "abcdef2-lon."]),
        (["long-start-1-long-end", "long-start-2-long-end"], ["long-start-1.", "long-start-2."]),
        (["as-long-a-start-1-as-its-end", "as-long-a-start-2-as-its-end"], None),
        (["10.1.2.3", "10.1.2.4"], ["10.1.2.3", "10.1.2.4"]),
        (["名前名前名前名前1", "名前名前名前名前2"], ["名前..名前1", "名前..名前2"]),
        ([], []),
    ],
)
def test_short_names_fit_and_never_make_two_hosts_look_alike(names: list[str], cells: list[str] | None) -> None:
    short = short_names(names, 13 if cells and cells[0].startswith("long") else 12)
    assert list(short.values()) == (names if cells is None else cells)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_sixty_hosts_with_long_names_stay_apart_within_the_screen(width: int) -> None:
    names = [f"gpu-compute-node-{number:04d}.cluster.example.org" for number in range(60)]
    results = [
        answer(
            name, report([card(f"GPU-{name}-{n}", states(3600, 3600, 7200), index=n) for n in range(8)], store_id=name)
        )
        for name in names
    ]
    text = render_fleet(merge(*results), width=width)
    assert max(map(wcswidth, text.splitlines())) <= width
    by_host = text[text.index("By host") : text.index("By group") if "By group" in text else None]
    assert set(re.findall(r"-(\d{4})[ .]", by_host)) == {f"{number:04d}" for number in range(60)}


def test_fleet_of_nobody_says_why_and_prints_no_number_for_it() -> None:
    text = render_fleet(merge(HostResult(Host("a", "a"), Outcome.UNREACHABLE, detail="connection refused")))
    assert "0 of 1 hosts reported" in text
    assert "a: unreachable: connection refused" in text
    assert "active      -" in text


def test_fleet_escapes_what_hosts_sent() -> None:
    document = report(
        [card("GPU-a", states(3600), name="NVIDIA \x1b[2J")],
        [user("\x1b]0;x\x07", states(3600))],
        findings=[{"id": "x", "severity": "warn", "card": None, "text": "a\nb\x1b"}],
    )
    text = render_fleet(merge(answer("a", document)))
    assert "\x1b" not in text
    assert "\x07" not in text


def test_fleet_colours_only_when_asked(fleet: Document) -> None:
    assert "\x1b[1m" in render_fleet(fleet, colour=True)
    assert "\x1b" not in render_fleet(fleet)


def test_names_are_cut_only_where_the_table_would_be_wider_than_the_screen() -> None:
    hold = {"user": "container:3f9c0ad41b7e", "process": "tritonserver", "pid": 1, "card": "GPU-a", "until": None}
    hold |= {"since": SINCE, "memory_mb": 31_000, "states": states(held=3600), "idle_held_long_card_s": 0.0}
    document = merge(answer("gpu01", report([card("GPU-a", states(3600))], holds=[hold])))
    assert "container:3f9c0ad41b7e@gpu01  gpu01" in render_fleet(document, width=100)
    narrow = render_fleet(document, width=80)
    assert "container:3f9c0ad41b7e@gpu01 gpu01" in narrow
    assert max(map(wcswidth, narrow.splitlines())) <= 80
    long = [hold | {"user": "u" * 90, "process": "p" * 90}]
    text = render_fleet(merge(answer("gpu01", report([card("GPU-a", states(3600))], holds=long))), width=80)
    assert max(map(wcswidth, text.splitlines())) <= 80


def test_every_amount_of_the_tables_has_its_unit() -> None:
    spent = states(3600, 5400, 900)
    hold = {"user": "eve", "process": "x", "card": "GPU-a", "pid": 1, "since": SINCE, "until": None, "memory_mb": 8192}
    held = report(
        [card("GPU-a", spent, energy_j=states(9e6, 5e6, 1e6), energy_known_s=9900.0)],
        [user("eve", spent, energy_j=1.5e7, energy_known_s=9900.0)],
        holds=[hold | {"states": spent}],
    )
    document = merge(answer("a", held, groups=("all",)))
    tables = (model_table, energy_table, host_table, user_table, group_table, hold_table)
    for table in [*headline_tables(document), *(make(document) for make in tables)]:
        assert (len(table.rows) > 0, without_unit(table)) == (True, []), table.title
