"""The other forms of the fleet report: each whole, each safe from the names that people choose."""

from __future__ import annotations

import csv
import email
import io
import re
from email import policy
from html.parser import HTMLParser

import pytest

from gua.errors import UsageError
from gua_fleet.merge import Known, merge_reports
from gua_fleet.model import Document, Host, HostResult, Outcome, Seen
from gua_fleet.render_csv import csv_cell, render_csv
from gua_fleet.render_html import render_html
from gua_fleet.render_mail import check_addresses, render_mail
from gua_fleet.render_md import render_md
from gua_fleet.render_svg import split_bar
from gua_fleet.render_table import render_fleet
from tests.documents import NOW_MS, SINCE_MS, UNTIL_MS, card, report, states, user
from tests.golden import check_golden, load

EVIL = "<script>alert(1)</script>|=cmd\x1b[2J*"


@pytest.fixture
def fleet() -> Document:
    """gpu01 and gpu02 as in the table's golden file, gpu03 silent and seen before, a user with an evil name."""
    evil = report(
        [card("GPU-e", states(60, 60), energy_j=states(7.2e6, 3.6e6), energy_known_s=60.0)],
        [user(EVIL, states(held=60), energy_j=3.6e6, energy_known_s=60.0), user("=1+1", states(60))],
        store_id="evil",
        hours_of_week=[{"weekday": 0, "hour": 9, "card_s": states(60, 60)}],
    )
    results = [
        HostResult(Host("gpu01", "x", groups=("vision",)), Outcome.OK, document=load("agent_report.json")),
        HostResult(Host("gpu02", "x", scheduler="slurm"), Outcome.OK, document=load("fleet_second.json")),
        HostResult(Host("gpu03", "x"), Outcome.TIMEOUT, detail="late & <late>", stage="connect"),
        HostResult(Host("gpu04", "x"), Outcome.OK, document=evil),
    ]
    known = Known(seen={"gpu03": Seen("2026-03-01T06:30:00Z", 8, {"NVIDIA L4": 8})})
    return merge_reports(
        results, since_ms=SINCE_MS, until_ms=UNTIL_MS, tz="Etc/UTC", generated_at_ms=NOW_MS, known=known
    )


class Page(HTMLParser):
    """What a browser would see: elements, their attributes and the text, and whether every element is closed."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_well_formed_loads_nothing_and_shows_evil_names_as_text(fleet: Document) -> None:
    page = Page(render_html(fleet))
    assert page.open == []
    assert page.tags.count("script") == 1
    assert "<script>alert(1)</script>|=cmd\\x1b[2J*" in page.text
    assert {"src", "href", "action", "srcset", "xlink:href"} & {name for name, _ in page.attributes} == set()
    assert not re.search(r"https?:|url\(|@import|//", render_html(fleet).partition("<script>const")[0].split("-->")[0])


def test_html_has_the_answer_on_its_first_page_and_everything_after_it(fleet: Document) -> None:
    text = render_html(fleet)
    first, details = text.split('<div class="details">')
    for words in (
        "held without work",
        "3 of 4 hosts reported",
        "gpu03 (timeout:connect, 8 cards)",
        "By model",
        "free:",
    ):
        assert words in first, words
    for words in ("By host", "By user", "By group", "Hours of the week", "late &amp; &lt;late&gt;", "Rule", "Energy"):
        assert words in details, words


def test_html_by_shows_only_what_was_picked_and_who_did_not_answer(fleet: Document) -> None:
    text = render_html(fleet, by=("user",))
    assert "By user" in text
    assert not {"By host", "By model", "By group", "Hours of the week"} & set(re.findall("<h2>(.*?)</h2>", text))
    assert "Hosts without a report" in text


def test_split_bar_fills_its_width_and_says_its_parts() -> None:
    bar = split_bar({**states(30, 50, 20), "unobserved": 100.0})
    assert [float(width) for width in re.findall(r'width="([\d.]+)" height', bar)] == [150, 250, 100, 500]
    assert "active 15 %, idle-held 25 %, truly-idle 10 %, unobserved 50 %" in bar
    assert split_bar({**states(), "unobserved": 0.0}) == split_bar(None) == "-"


def test_csv_is_rectangular_raw_and_no_formula(fleet: Document) -> None:
    rows = list(csv.DictReader(io.StringIO(render_csv(fleet))))
    assert {len(row) for row in rows} == {18}
    assert not any(None in row for row in rows)
    by_name = {(row["section"], row["name"]): row for row in rows}
    assert ("user", "'=1+1") in by_name
    assert by_name["fleet", ""]["expected_card_s"] == str(fleet["coverage"]["expected_card_s"])
    silent = by_name["host", "gpu03"]
    assert (silent["outcome"], silent["cards"], silent["active_card_s"]) == ("timeout:connect", "8", "")
    assert by_name["host", "gpu04"]["truly_idle_card_s"] == "0"
    assert by_name["model", "NVIDIA L4"]["unobserved_card_s"] == str(8 * 4 * 3600.0)


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("line\nbreak", "line\\x0abreak"),
        ("\u202etxt", "\\u202etxt"),
        ("\t=1+1", "\\x09=1+1"),
        ("-1+1", "'-1+1"),
        ("\U000e0001" * 300, "\\U000e0001" * 300),
        (None, ""),
        (True, 1),
        (0, 0),
    ],
)
def test_csv_cell_is_no_formula_and_nothing_to_a_terminal(value: object, cell: object) -> None:
    assert csv_cell(value) == cell


def test_csv_states_of_a_section_add_up_to_the_fleets(fleet: Document) -> None:
    rows = list(csv.DictReader(io.StringIO(render_csv(fleet))))
    for column in ("active_card_s", "idle_held_card_s", "unknown_card_s", "expected_card_s"):
        total = float(next(row[column] for row in rows if row["section"] == "fleet"))
        assert sum(float(row[column]) for row in rows if row["section"] == "model") == pytest.approx(total)


def test_csv_by_keeps_the_fleet_and_the_sections_picked(fleet: Document) -> None:
    rows = csv.DictReader(io.StringIO(render_csv(fleet, ("group", "host"))))
    assert {row["section"] for row in rows} == {"fleet", "group", "host"}


def test_md_is_the_golden_file(fleet: Document) -> None:
    check_golden("fleet_report.md", render_md(fleet))


def test_md_tables_keep_their_columns_whatever_names_hold(fleet: Document) -> None:
    text = render_md(fleet)
    assert "\\<script\\>alert(1)\\</script\\>\\|=cmd" in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_table_by_shows_the_sections_picked_and_nothing_else_but_who_is_missing(fleet: Document) -> None:
    text = render_fleet(fleet, by=("group", "model"))
    titles = [line for line in text.splitlines() if line in ("By model", "By host", "By user", "By group", "Free now")]
    assert titles == ["By model", "By group"]
    assert "gpu03: timeout:connect: late & <late> (last seen 2026-03-01 06:30)" in text


def test_table_shows_energy_where_it_is_known_and_marks_a_part(fleet: Document) -> None:
    text = render_fleet(fleet)
    energy = text[text.index("Energy") :].splitlines()
    # 2 kWh active and 1 kWh idle-held, known for half of the two minutes
    assert next(line.split()[-6:] for line in energy if "H100" in line) == [">3.00", "2.00", "1.00", "0", "<1", "%"]


def test_heat_of_truly_idle_takes_the_place_of_idle_held(fleet: Document) -> None:
    lines = render_fleet(fleet, heat="truly-idle").splitlines()
    place = lines.index("Hours of the week")
    assert lines[place + 1].split() == ["truly-idle", "active"]


def parsed(content: bytes) -> email.message.EmailMessage:
    message = email.message_from_bytes(content, policy=policy.default)
    assert isinstance(message, email.message.EmailMessage)
    return message


def test_mail_has_the_tables_as_text_and_the_page_attached(fleet: Document) -> None:
    content = render_mail(fleet, to=["Ops <ops@example.org>", "boss@example.org"], sender="gua@example.org")
    message = parsed(content)
    assert message["To"] == "Ops <ops@example.org>, boss@example.org"
    assert message["From"] == "gua@example.org"
    assert "held without work" in message["Subject"]
    assert message["Subject"].endswith("no answer from 1 of 4 hosts")
    body = message.get_body(("plain",))
    assert body is not None
    assert body.get_content() == render_fleet(fleet, width=80)
    [page] = message.iter_attachments()
    assert (page.get_content_type(), page.get_filename()) == ("text/html", "gpu-use-2026-03-02.html")
    assert page.get_content() == render_html(fleet)
    assert content.isascii()
    assert max(map(len, content.splitlines())) < 998
    assert b"\r" not in content


def test_mail_without_a_sender_leaves_it_to_sendmail(fleet: Document) -> None:
    assert parsed(render_mail(fleet, to=["a@example.org"]))["From"] is None


@pytest.mark.parametrize("address", ["", "nobody", "a@b\nBcc: c@example.org", "a b@c d", "@example.org"])
def test_mail_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="--mail-to"):
        check_addresses([address], None)
