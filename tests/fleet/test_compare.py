"""One window against another: every expected figure can be checked in the head."""

from __future__ import annotations

import csv
import io
import json
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gua.errors import UsageError
from gua.report.zones import find_zone
from gua.units import parse_time_ms, to_iso
from gua_fleet.anonymous import compare_without_names
from gua_fleet.compare import compare_reports, told
from gua_fleet.merge import merge_reports
from gua_fleet.model import Document, Host, HostResult, Outcome
from gua_fleet.period import other_window
from gua_fleet.view import rendered
from gua_fleet.view_compare import compare_view, windows_text
from gua_fleet.view_html import render_still
from tests.documents import NOW_MS, RULE, SINCE_MS, card, report, states, user
from tests.golden import check_golden

HOUR = 3600.0
DAY_MS = 86_400_000


def week(*results: HostResult, back: int = 0, hours: int = 4) -> Document:
    since_ms = SINCE_MS - back * DAY_MS
    span = {"since_ms": since_ms, "until_ms": since_ms + hours * 3_600_000}
    return merge_reports(results, **span, tz="Etc/UTC", generated_at_ms=NOW_MS)


def host(name: str, held_h: float, active_h: float, hours: int = 4, back: int = 0, **users: float) -> HostResult:
    """One card that was looked at for held + active hours of the window. users: idle-held hours of each."""
    spent = states(active_h * HOUR, held_h * HOUR)
    expected = hours * HOUR
    one = card(f"GPU-{name}", spent, expected_card_s=expected, unobserved_card_s=expected - sum(spent.values()))
    since_ms = SINCE_MS - back * DAY_MS
    window = {
        "since": to_iso(since_ms),
        "until": to_iso(since_ms + hours * 3_600_000),
        "history_begins": None,
    }
    people = [user(who, states(0, amount * HOUR)) for who, amount in users.items()]
    return HostResult(Host(name, name), Outcome.OK, document=report([one], people, store_id=name, window=window))


def compared(this: Document, before: Document) -> Document:
    return compare_reports(this, before, generated_at_ms=NOW_MS)


def test_less_idle_held_time_is_reclaimed_by_host_and_by_user() -> None:
    document = compared(
        week(host("a", 1, 3, alice=1), host("b", 2, 2, bob=2)),
        week(host("a", 3, 1, back=7, alice=3), host("b", 2, 2, back=7, bob=1, alice=1), back=7),
    )
    assert [row["reclaimed_card_s"] / HOUR for row in document["hosts"]] == [2, 0]
    assert {row["user"]: row["reclaimed_card_s"] / HOUR for row in document["users"]} == {"alice": 3, "bob": -1}
    assert document["fleet"]["reclaimed_card_s"] == 2 * HOUR
    assert [document["fleet"]["change"][state]["told"] for state in ("active", "idle-held")] == ["more", "less"]


def test_difference_within_what_was_not_seen_is_not_told() -> None:
    # One hour less was held, but of each window two hours were not seen.
    row = compared(week(host("a", 0.5, 1.5)), week(host("a", 1.5, 0.5, back=7), back=7))["hosts"][0]
    change = row["change"]["idle-held"]
    assert (change["card_s"], change["told"]) == (-1 * HOUR, "not-told")
    assert (change["at_least_card_s"], change["at_most_card_s"]) == (-3 * HOUR, 1 * HOUR)


def test_window_of_another_length_counts_as_if_it_were_as_long() -> None:
    document = compared(week(host("a", 1, 3)), week(host("a", 4, 4, hours=8, back=7), back=7, hours=8))
    assert document["scale"] == 0.5
    assert document["hosts"][0]["reclaimed_card_s"] == 1 * HOUR
    assert "counted 0.5 times" in rendered(compare_view(document), "table", None)


def test_host_without_figures_in_one_window_is_told_and_has_no_change() -> None:
    silent = HostResult(Host("b", "b", cards=1), Outcome.UNREACHABLE, detail="no route")
    document = compared(week(host("a", 1, 3), silent), week(host("a", 1, 3, back=7), host("b", 4, 0, back=7), back=7))
    row = document["hosts"][1]
    assert (row["this"], row["change"], row["reclaimed_card_s"]) == (None, None, None)
    # Its card was expected and not seen, so the fleet's four hours less may be none.
    assert document["fleet"]["change"]["idle-held"]["told"] == "not-told"
    text = rendered(compare_view(document), "table", None)
    assert "Without figures now: b (unreachable)." in text
    assert "lies within what was not seen (it may be 0 to 4.00 reclaimed)" in text


def test_host_without_figures_in_either_window_is_in_no_bound() -> None:
    silent = HostResult(Host("b", "b", cards=8), Outcome.UNREACHABLE, detail="no route")
    document = compared(week(host("a", 1, 3, alice=1), silent), week(host("a", 2, 2, back=7, alice=2), silent, back=7))
    assert document["fleet"]["this"]["expected_card_s"] == 4 * HOUR
    assert document["users"][0]["change"]["idle-held"]["told"] == "less"
    assert document["coverage"]["this"]["expected_card_s"] == 9 * 4 * HOUR
    text = rendered(compare_view(document), "table", None)
    assert "Without figures in either window, so in nothing here: b (unreachable)." in text


def test_host_that_judged_by_another_rule_in_both_windows_is_in_no_bound() -> None:
    def strict(back: int) -> HostResult:
        other = host("b", 1, 3, back=back)
        assert other.document is not None
        other.document["rules"] = [RULE | {"active_util_pct": 50}]
        return other

    plain = [host("a", 1, 3), host("c", 1, 3)]
    past = [host("a", 1, 3, back=7), host("c", 1, 3, back=7)]
    document = compared(week(*plain, strict(0)), week(*past, strict(7), back=7))
    assert document["fleet"]["this"]["expected_card_s"] == 2 * 4 * HOUR
    assert document["fleet"]["change"]["active"]["told"] == "same"


def test_host_of_which_not_even_the_cards_are_known_is_a_finding() -> None:
    silent = HostResult(Host("b", "b"), Outcome.UNREACHABLE, detail="no route")
    document = compared(week(host("a", 1, 3), silent), week(host("a", 1, 3, back=7), host("b", 4, 0, back=7), back=7))
    assert [finding["id"] for finding in document["findings"]] == ["host_not_known"]


def test_windows_judged_by_different_rules_are_a_finding() -> None:
    other = host("a", 1, 3, back=7)
    assert other.document is not None
    other.document["rules"] = [RULE | {"active_util_pct": 50}]
    document = compared(week(host("a", 1, 3)), week(other, back=7))
    assert [finding["id"] for finding in document["findings"]] == ["rules_differ"]


amounts = st.integers(0, 4 * 3600)


@given(amounts, amounts, amounts, amounts)
def test_bounds_hold_whatever_the_unseen_time_was(now: int, then: int, now_more: int, then_more: int) -> None:
    """now, then: seen idle-held seconds. *_more: seconds of the unseen rest that were idle-held in truth."""
    window = 4 * 3600
    now_more, then_more = min(now_more, window - now), min(then_more, window - then)
    change = compared(week(host("a", now / HOUR, 0)), week(host("a", then / HOUR, 0, back=7), back=7))["fleet"][
        "change"
    ]
    truth = now + now_more - then - then_more
    assert change["idle-held"]["at_least_card_s"] <= truth <= change["idle-held"]["at_most_card_s"]
    if change["idle-held"]["told"] in ("more", "less"):
        assert (truth > 0) == (change["idle-held"]["told"] == "more")


@pytest.mark.parametrize(
    ("least_s", "most_s", "word"),
    [(1, 2, "more"), (-2, -1, "less"), (0, 0, "same"), (-1, 1, "not-told"), (0, 5, "not-told")],
)
def test_told(least_s: int, most_s: int, word: str) -> None:
    assert told(least_s * 10**6, most_s * 10**6) == word


def example() -> Document:
    return compared(
        week(host("a", 1, 3, alice=1), host("b", 1, 1, bob=1)),
        week(host("a", 3, 1, back=7, alice=3), host("b", 2, 2, back=7, **{"=cmd": 2}), back=7),
    )


def test_table_says_what_is_certain_and_what_is_not() -> None:
    lines = rendered(compare_view(example()), "table", None).splitlines()
    rows = {line.split()[0]: line.split() for line in lines if line.startswith(("a ", "b ", "alice", "bob"))}
    assert rows["a"] == ["a", "3.00", "+2.00", "1.00", "3.00", "+2.00", "100", "%", "100", "%"]
    assert rows["b"] == ["b", "1.00", "-1.00?", "1.00", "2.00", "+1.00?", "50", "%", "100", "%"]
    # Two hours of b were not seen, and alice may have held its card then.
    assert rows["alice"][-1] == "+2.00?"
    assert "Held without work: 2.00 GPU-hours, 3.00 reclaimed (1.00 to 3.00 reclaimed)." in lines


def test_forms_for_programs_and_pages() -> None:
    view = compare_view(example(), top=None)
    assert json.loads(rendered(view, "json", None))["schema"] == "gua.fleet-compare/1"
    rows = list(csv.DictReader(io.StringIO(rendered(view, "csv", None))))
    assert [row["name"] for row in rows] == ["", "a", "b", "'=cmd", "alice", "bob"]
    assert {None} & set(rows[0]) == set()
    assert (rows[1]["reclaimed_card_s"], rows[1]["idle_held_change_told"]) == ("7200.0", "less")
    assert "## By user" in rendered(view, "md", None)
    page = render_still("GPU use <compared>", view)
    assert "<h1>GPU use &lt;compared&gt;</h1>" in page
    assert "<td>alice</td>" in page


def test_document_and_table_are_as_they_were_reviewed() -> None:
    view = compare_view(example())
    check_golden("fleet_compare.golden.json", rendered(view, "json", None))
    check_golden("fleet_compare.txt", rendered(view, "table", 100))


def test_sections_are_picked() -> None:
    view = compare_view(example(), by=("user",))
    assert [section.title for section in view.sections] == ["By user"]
    assert {row["section"] for row in view.flat} == {"fleet", "user"}


def test_without_names_one_person_is_one_user_in_both_windows() -> None:
    document = compare_without_names(example())
    assert "alice" not in json.dumps(document)
    assert [row["user"] for row in document["users"]] == ["user 2", "user 1", "user 3"]
    assert document["names"] is False


def test_document_fits_its_schema_and_the_schema_describes_it_all() -> None:
    name = "gua.fleet-compare.1.schema.json"
    schema: Any = json.loads(files("gua_fleet.schemas").joinpath(name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    silent = HostResult(Host("c", "c"), Outcome.UNREACHABLE, detail="no route")
    short = compared(week(host("a", 1, 3), silent), week(host("a", 1, 3, back=7), silent, back=7))
    for document in (example(), short, compare_without_names(example())):
        Draft202012Validator(schema).validate(document)
        assert set(document) == set(schema["properties"])


NOW = "2026-03-11T12:07:03Z"  # a Wednesday
THIS = ("2026-03-04T12:00:00Z", "2026-03-11T12:00:00Z")


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("last week", ("2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z")),
        ("last-week", ("2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z")),
        ("Last Month", ("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z")),
        ("7d", ("2026-02-25T12:00:00Z", "2026-03-04T12:00:00Z")),
        ("2026-02-01..2026-02-03T06:00", ("2026-02-01T00:00:00Z", "2026-02-03T06:00:00Z")),
        ("3d..", ("2026-03-08T12:00:00Z", "2026-03-11T12:00:00Z")),
    ],
)
def test_window_to_compare_with(text: str, window: tuple[str, str]) -> None:
    zone = find_zone("UTC")
    assert zone is not None
    this = (parse_time_ms(THIS[0]), parse_time_ms(THIS[1]))
    assert tuple(map(to_iso, other_window(text, this, now_ms=parse_time_ms(NOW), zone=zone))) == window


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("next week", "write one of today, yesterday, last week"),
        ("2026-02-03..2026-02-01", "the window is empty"),
        ("2026-03-04T12:00..2026-03-11T12:00", "is this window itself"),
        ("bad..worse", "is no duration"),
        ("99999d", "the window is empty"),
    ],
)
def test_window_that_cannot_be_compared_with_is_refused(text: str, words: str) -> None:
    zone = find_zone("UTC")
    assert zone is not None
    this = (parse_time_ms(THIS[0]), parse_time_ms(THIS[1]))
    with pytest.raises(UsageError, match=words):
        other_window(text, this, now_ms=parse_time_ms(NOW), zone=zone)


def test_both_windows_are_named() -> None:
    assert windows_text(example()) == (
        "2026-03-02 08:00 to 2026-03-02 12:00, against 2026-02-23 08:00 to 2026-02-23 12:00 (Etc/UTC)"
    )
