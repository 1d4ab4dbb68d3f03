"""The page of free cards: what it says, that it says so of its own age, and that no text in it becomes markup."""

from __future__ import annotations

import re

import pytest

from gua_fleet.view import Section, View
from gua_fleet.view_html import render_page

MADE = {"generated_at": "2026-03-02T08:00:07Z"}


def page(view: View | None = None, refresh_s: int | None = None) -> str:
    return render_page(view or View(MADE, lines=["2 cards free: a:0,2"]), refresh_s=refresh_s)


def text_of(html: str) -> str:
    """What a browser without script shows."""
    body = html.partition("<body>")[2].partition("<script>")[0]
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", "", body)).strip()


def test_the_answer_is_the_heading_and_its_number_the_title() -> None:
    html = page()
    assert "<h1>2 cards free: a:0,2</h1>" in html
    assert "<title>2 cards free</title>" in html


@pytest.mark.parametrize(
    ("refresh_s", "says", "old_after_s"),
    [
        (None, "Once it is older than 10 min, do not rely on it.", 600),
        (120, "A new page comes every 2 min. Once it is older than 6 min, do not rely on it.", 360),
    ],
)
def test_the_page_tells_its_age_and_its_limit_without_any_script(
    refresh_s: int | None, says: str, old_after_s: int
) -> None:
    html = page(refresh_s=refresh_s)
    assert f"As of 2026-03-02 08:00 UTC. {says}" in text_of(html)
    assert f'<time datetime="2026-03-02T08:00:07Z" data-old-after="{old_after_s}">' in html
    assert ('<meta http-equiv="refresh" content="120">' in html) == (refresh_s is not None)


def test_the_page_loads_nothing_and_no_text_of_a_host_becomes_markup() -> None:
    evil = '<img src=x onerror="alert(1)">'
    section = Section(evil, ("host", "cards"), [(evil, None)], "lr")
    html = page(View(MADE, lines=[f"{evil}: none", evil], sections=[section], notes=[evil]))
    assert "<img" not in html
    assert html.count("&lt;img") == 6  # title, heading, line, title of the table, cell, note
    assert "default-src 'none'" in html
    assert not re.search(r"(src|href)=", html.replace("&lt;img src=x", ""))
    assert '<td class="r">-</td>' in html
