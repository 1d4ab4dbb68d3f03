"""What a report makes of history that is the store's and no answer: counted, and marked wherever it stands."""

from __future__ import annotations

import csv
import io
import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gua_fleet.anonymous import without_names
from gua_fleet.ask import exit_status
from gua_fleet.merge import merge_reports
from gua_fleet.model import Document, Host, HostResult, Outcome, Stored
from gua_fleet.render_csv import render_csv
from gua_fleet.render_html import render_html
from gua_fleet.render_md import render_md
from gua_fleet.render_table import render_fleet
from gua_fleet.rows_stored import stored_text
from tests.documents import NOW_MS, SINCE_MS, UNTIL_MS, card, report, states, user

HOUR_MS = 3_600_000


def stored(name: str, hours_old: int, active_s: float, **fields: Any) -> Stored:
    """Two hours of one card that was looked at until then; of the window's last two hours nothing is known."""
    one = card(f"GPU-{name}", states(active_s, 7200 - active_s), now=None)
    people = [user("alice", states(active_s, 7200 - active_s))]
    document = report([one], people, store_id=name, **fields)
    return Stored(document, NOW_MS - hours_old * HOUR_MS, UNTIL_MS - 2 * HOUR_MS)


def answer(name: str, outcome: Outcome, **fields: Any) -> HostResult:
    return HostResult(Host(name, name, cards=1), outcome, **fields)


def merged(*results: HostResult) -> Document:
    return merge_reports(results, since_ms=SINCE_MS, until_ms=UNTIL_MS, tz="Etc/UTC", generated_at_ms=NOW_MS)


def filled() -> tuple[HostResult, HostResult]:
    up = report([card("GPU-up", states(14_400))], store_id="up")
    return (
        answer("up", Outcome.OK, document=up),
        answer("down", Outcome.UNREACHABLE, detail="no route to host", stored=stored("down", 5, 3600)),
    )


def test_store_fills_in_for_a_host_that_did_not_answer_and_its_row_says_so() -> None:
    document = merged(*filled())
    row = document["hosts"][1]
    assert (row["outcome"], row["failed"], row["detail"]) == ("unreachable", True, "no route to host")
    assert row["from_store"] == {
        "pulled_at": "2026-03-02T07:00:10Z",
        "newest_tick_at": "2026-03-02T10:00:00Z",
        "age_s": 5 * 3600,
    }
    assert row["card_s"] == states(3600, 3600)
    assert document["hosts"][0]["from_store"] is None
    assert document["card_s"] == states(18_000, 3600)
    # Four hours of each card were expected, and two of one of them are in nobody's history.
    coverage = document["coverage"]
    assert (coverage["expected_card_s"], coverage["unobserved_card_s"]) == (28_800, 7_200)


def test_host_whose_history_is_the_stores_still_fails_the_run() -> None:
    assert exit_status(filled()) == 1
    assert exit_status([filled()[1]]) == 3


def test_host_whose_history_is_the_stores_stays_among_those_without_a_report() -> None:
    text = render_fleet(merged(*filled()))
    assert "1 of 2 hosts reported. No answer: down (unreachable, 1 card). From the store: down (pulled" in text
    assert "down: unreachable: no route to host" in text
    assert "its figures are from the store" in " ".join(text.split())
    assert "unreachable (5 h old)" in text


@pytest.mark.parametrize("render", [render_md, render_html])
def test_every_form_for_people_marks_what_is_the_stores(render: Any) -> None:
    page = " ".join(render(merged(*filled())).split()).replace("\\", "")
    assert "unreachable (5 h old)" in page
    assert "its figures are from the store" in page


def test_csv_tells_the_age_of_what_is_the_stores() -> None:
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(render_csv(merged(*filled()))))}
    assert (rows["down"]["outcome"], rows["down"]["store_age_s"]) == ("unreachable", "18000.0")
    assert rows["up"]["store_age_s"] == ""


def test_store_says_nothing_of_now() -> None:
    document = merged(*filled())
    assert [row["host"] for row in document["free"]] == ["up"]
    assert document["stale"] == [{"host": "down", "cards": 1}]


def test_report_of_the_store_alone_says_that_nobody_was_asked() -> None:
    results = [
        answer("a", Outcome.STORED, stored=stored("a", 1, 3600)),
        answer("b", Outcome.STORED, stored=stored("b", 30, 3600)),
        answer("c", Outcome.NO_HISTORY, detail="never pulled"),
    ]
    text = " ".join(render_fleet(merged(*results)).split())
    assert "From the store, nobody was asked: history of 2 of 3 hosts, pulled 1 h 00 min to 30 h 00 min ago." in text
    assert "Nothing to report: c (no-history, 1 card)." in text
    assert "Which cards are free is not known." in text
    assert "hosts reported" not in text
    assert "Free now" not in text
    assert exit_status(results) == 0


@pytest.mark.parametrize(
    ("hours_old", "words"), [((5, 5), "pulled 5 h 00 min ago."), ((2, 5), "pulled 2 h 00 min to 5 h 00 min ago.")]
)
def test_store_says_once_how_old_it_is_where_all_of_it_is(hours_old: tuple[int, int], words: str) -> None:
    hosts = [answer(name, Outcome.STORED, stored=stored(name, hours, 3600)) for name, hours in zip("ab", hours_old)]
    assert (stored_text(merged(*hosts)) or "").endswith(words)


def test_host_that_answers_is_counted_and_not_its_older_name_in_the_store() -> None:
    again = report([card("GPU-x", states(14_400))], store_id="x")
    old = Stored(report([card("GPU-x", states(60), now=None)], store_id="x"), NOW_MS - HOUR_MS)
    document = merged(
        answer("a-old-name", Outcome.UNREACHABLE, detail="no such name", stored=old),
        answer("new-name", Outcome.OK, document=again),
    )
    assert document["card_s"] == states(14_400)
    assert document["hosts"][0]["card_s"] is None
    assert document["hosts"][0]["detail"].startswith("no such name; same agent as new-name")


def test_documents_with_stored_history_fit_the_schema() -> None:
    name = "gua.fleet-report.1.schema.json"
    schema = json.loads(files("gua_fleet.schemas").joinpath(name).read_text(encoding="utf-8"))
    for document in (merged(*filled()), without_names(merged(*filled()))):
        Draft202012Validator(schema).validate(document)
