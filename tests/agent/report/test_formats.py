"""Markdown, CSV and HTML: the same figures, and names that stay names."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from typing import Any, Optional

import pytest

from gua.report.render_csv import COLUMNS, render_csv
from gua.report.render_html import render_html
from gua.report.render_md import escaped, render_md
from gua.report.render_text import render_report
from tests.documents import RULE, card, now, report, states, user
from tests.golden import load

EVIL = "<script>alert(1)</script>|`x`[a](http://evil.example)\"'&*\x1b[31m\n"
VOID = {"meta", "br"}


def evil_report() -> Any:
    holder = {"user": EVIL, "process": EVIL, "pid": 7, "memory_mb": 2048, "type": "compute", "mounts": EVIL}
    one = card("GPU-a", states(3600, 1800, 60, 60), name=EVIL, now=now("idle-held", holders=[holder]))
    document = report([one], [user(EVIL, states(3600), energy_j=3.6e6)], findings=[])
    document["host"]["hostname"] = EVIL
    document["host"]["scheduler"] = EVIL
    document["findings"] = [{"id": "x", "severity": "warn", "card": None, "text": EVIL}]
    document["hours_of_week"] = [{"weekday": 0, "hour": 9, "card_s": states(3, 1)}]
    document["timeline"] = {"since": "2026-03-02T08:00:00Z", "step_s": 900, "cards": [{"card": "GPU-a", "steps": []}]}
    document["timeline"]["cards"][0]["steps"] = [[900.0, 0.0, 0.0, 0.0, 0.0]] * 15 + [[0.0, 0.0, 0.0, 0.0, 900.0]]
    return document


class Page(HTMLParser):
    """Tags in order, checked to be closed; attributes; text outside of tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, Optional[str]]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Optional[str]]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, Optional[str]]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)


def test_html_is_one_whole_page_that_runs_nothing_and_loads_nothing() -> None:
    text = render_html(evil_report())
    page = Page(text)
    assert page.open == []
    assert {tag for tag, _ in page.tags} & {"script", "a", "img", "link", "iframe", "form", "object", "base"} == set()
    names = {name for _, attributes in page.tags for name in attributes}
    assert names & {"src", "href", "onload", "onclick", "style", "xlink:href"} == set()
    assert "url(" not in text
    assert "@import" not in text
    policy = next(found["content"] for tag, found in page.tags if found.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_html_shows_evil_names_as_the_text_they_are() -> None:
    text = render_html(evil_report())
    assert "<script" not in text
    assert "\x1b" not in text
    cells = [words for words in Page(text).words if "script" in words]
    assert len(cells) >= 6, "the title, heading, card, user, holder, finding"
    assert all("<script>alert(1)</script>" in words for words in cells)


def test_html_pictures_are_described_in_words() -> None:
    pictures = [found for tag, found in Page(render_html(evil_report())).tags if tag == "svg"]
    assert all(found.get("aria-label") or found.get("aria-hidden") for found in pictures)
    assert "active 94 %, idle-held 0 %, truly-idle 0 %, unknown 0 %, not seen 6 %" in [
        found.get("aria-label") for found in pictures
    ]


def test_html_begins_with_the_answer() -> None:
    words = " ".join(" ".join(Page(render_html(load("agent_report.json"))).words).split())
    assert (
        "Of the time whose use is known, 23 % was worked, 38 % was held without work and 38 % was free. "
        "Of 4 cards that amounts to 1.5 held without work and 1.5 free."
    ) in words
    assert words.index("Of the time whose use") < words.index("1. Where the card time went")


def test_html_without_history_says_so_and_draws_nothing() -> None:
    text = render_html(report([]))
    assert "No history yet" in text
    assert "<svg" not in text


def test_html_where_nothing_is_known_gives_no_shares() -> None:
    text = render_html(report([card("GPU-a", states(unknown=3600))]))
    assert "nothing is known" in text
    assert "<b>-</b>" in text


@pytest.mark.parametrize("render", [render_md, render_html, render_report])
def test_every_format_says_the_same_sections_and_headline(render: Any) -> None:
    text = render(load("agent_report.json"))
    titles = ["Where the card time went", "Idle capacity", "Cards", "Who held the cards", "Hours of the week", "Now"]
    places = [text.index(f". {title}") for title in [*titles, "Energy", "Findings"]]
    assert places == sorted(places)
    assert "38 % (31-50 %)" in text


def test_md_keeps_a_name_in_its_cell() -> None:
    text = render_md(evil_report())
    rows = [line for line in text.splitlines() if line.startswith("|")]
    tables: list[set[int]] = [set()]
    for line in text.splitlines():
        if line.startswith("|"):
            tables[-1].add(len(re.findall(r"(?<!\\)\|", line)))
        elif tables[-1]:
            tables.append(set())
    assert all(len(bars) <= 1 for bars in tables)
    assert rows
    assert "<script" not in text.replace("\\<", "")
    assert "\x1b" not in text


def test_md_escapes_what_markdown_reads() -> None:
    assert escaped("a|b*c_d`e`[f](g)<h>") == "a\\|b\\*c\\_d\\`e\\`\\[f\\](g)\\<h>"


def table_of(document: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_csv(document))))


def values(rows: list[dict[str, str]], **keys: str) -> list[str]:
    return [row["value"] for row in rows if all(row[name] == value for name, value in keys.items())]


def test_csv_is_one_tidy_table_with_units() -> None:
    rows = table_of(load("agent_report.json"))
    assert all(set(row) == set(COLUMNS) for row in rows)
    assert values(rows, section="host", measure="card_time", state="idle-held") == ["18000"]
    assert sum(float(one) for one in values(rows, section="cards", measure="card_time", state="idle-held")) == 18000
    assert values(rows, section="users", user="bob", measure="idle_held_time", unit="s") == ["18000"]
    assert values(rows, section="host", measure="rule_1_held_mb", unit="MiB") == ["100"]
    keys = [tuple(row[name] for name in COLUMNS[:-1]) for row in rows if row["section"] != "now"]
    assert len(keys) == len(set(keys)), "every value has a name of its own"


def test_csv_leaves_the_unknown_empty_and_writes_zero_as_zero() -> None:
    rows = table_of(report([card("GPU-a", states(), index=None, memory_total_mb=None)], [user("ada", states(60))]))
    assert values(rows, section="cards", measure="memory_total") == [""]
    assert values(rows, section="cards", measure="card_time", state="active") == ["0"]
    assert values(rows, section="users", measure="energy") == [""]
    assert values(rows, section="cards", measure="energy") == []


@pytest.mark.parametrize("name", ["=1+2", "+1", "-1", "@SUM(A1)", "\tx"])
def test_csv_names_are_no_formulas(name: str) -> None:
    rows = table_of(report([card("GPU-a", states(60))], [user(name, states(60))]))
    (shown_name,) = {row["user"] for row in rows if row["section"] == "users"}
    assert shown_name[0] in "'\\"


def test_sensitivity_is_a_section_of_its_own_in_every_format() -> None:
    document = load("agent_report.json")
    document["sensitivity"] = [{"rule": {**RULE, "active_util_pct": 5}, "card_s": states(1, 1, 2)}]
    for text in (render_report(document), render_md(document), render_html(document)):
        assert "What other rules would say" in text
        assert "active from 5 %, held over 100 MB" in text
        assert "25 %" in text
    (value,) = values(table_of(document), section="sensitivity", state="truly-idle")
    assert value == "2"


def test_html_names_on_its_first_page_what_is_broken() -> None:
    document = load("agent_report.json")
    words = " ".join(Page(render_html(document)).words)
    (broken,) = [one["text"] for one in document["findings"] if one["severity"] == "fail"]
    assert words.index(broken) < words.index("1. Where the card time went")


@pytest.mark.parametrize(("step_s", "name"), [(900, "15 minutes"), (3600, "1 hour"), (172_800, "2 days")])
def test_html_says_how_much_time_a_column_is(step_s: int, name: str) -> None:
    document = evil_report()
    document["timeline"]["step_s"] = step_s
    assert f"One column is {name}, filled" in render_html(document)
