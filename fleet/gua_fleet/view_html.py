"""A small command's view as one HTML page, for a screen on the wall or people without an account. Pure.

A page of the present tells how old it is, and when it is too old to be believed: somebody may look at it long after
whatever makes it anew has broken down.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gua.units import MS_PER_SECOND, format_duration
from gua_fleet.render import Cell
from gua_fleet.render_html_page import page
from gua_fleet.show import one_line
from gua_fleet.view import Section, View

# Of a page that nobody said to make anew.
_OLD_AFTER_S = 600
_OLD_AFTER_REFRESHES = 3
_LIMIT = 1000

_STYLE = """
main h1 { overflow-wrap: anywhere; } main table { width: auto; min-width: 50%; margin: 1.2rem 0; }
main.old { opacity: .4; } [hidden] { display: none; }
"""
_SCRIPT = """
const made = document.querySelector("time"), warning = document.querySelector(".warn"), title = document.title;
const words = s => s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
const tellAge = () => {
  const age = Math.max(0, (Date.now() - Date.parse(made.dateTime)) / 1000), old = age > made.dataset.oldAfter;
  document.querySelector("#age").textContent = `, ${words(age)} ago`;
  warning.hidden = !old;
  warning.textContent = `This page is ${words(age)} old and was not made anew: what it says was true then.`;
  document.querySelector("main").classList.toggle("old", old);
  document.title = old ? `(out of date) ${title}` : title;
};
tellAge();
setInterval(tellAge, 5000);
"""


def render_page(view: View, *, refresh_s: int | None = None) -> str:
    """The whole page; its first line is the heading, and up to a colon the title.

    view.document["generated_at"]: ISO 8601 in UTC. refresh_s: how often the page is made anew, in seconds; None: once.
    """
    headline, *lines = view.lines
    parts = [f"<h1>{_safe(headline)}</h1>", _age(view.document["generated_at"], refresh_s), *_body(lines, view)]
    head = "" if refresh_s is None else f'<meta http-equiv="refresh" content="{refresh_s}">\n'
    body = '<p class="warn" hidden></p>\n<main>\n' + "\n".join(parts) + "\n</main>"
    return page(one_line(headline.partition(":")[0], _LIMIT), body, head=head, style=_STYLE, script=_SCRIPT)


def render_still(title: str, view: View) -> str:
    """The same of a view that stays true. title: also its heading."""
    return page(one_line(title, _LIMIT), "\n".join([f"<h1>{_safe(title)}</h1>", *_body(view.lines, view)]))


def _body(lines: Sequence[str], view: View) -> list[str]:
    return [
        *(f"<p>{_safe(line)}</p>" for line in lines),
        *(_table(section) for section in view.sections if section.rows),
        *(f'<p class="soft">{_safe(note)}</p>' for note in view.notes),
    ]


def _age(made_at: str, refresh_s: int | None) -> str:
    """When it was made, and until when it holds: also for those whose browser runs no script."""
    old_after_s = _OLD_AFTER_S if refresh_s is None else _OLD_AFTER_REFRESHES * refresh_s
    again = "" if refresh_s is None else f"A new page comes every {_duration(refresh_s)}. "
    return (
        f'<p class="soft">As of <time datetime="{escape(made_at)}" data-old-after="{old_after_s}">'
        f'{escape(made_at[:16].replace("T", " "))} UTC</time><span id="age"></span>. {again}'
        f"Once it is older than {_duration(old_after_s)}, do not rely on it.</p>"
    )


def _table(section: Section) -> str:
    align = section.align or "l" * len(section.headers)
    sides = [' class="r"' if letter == "r" else "" for letter in align]
    heads = _cells("th", section.headers, sides)
    rows = "\n".join(f"<tr>{_cells('td', row, sides)}</tr>" for row in section.rows)
    title = f"<h2>{_safe(section.title)}</h2>\n" if section.title else ""
    return (
        f'{title}<div class="wide"><table class="sortable"><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _cells(tag: str, cells: Sequence[Cell], sides: Sequence[str]) -> str:
    texts = ("-" if cell is None else str(cell) for cell in cells)
    return "".join(f"<{tag}{side}>{_safe(text)}</{tag}>" for text, side in zip(texts, sides, strict=True))


def _duration(seconds: int) -> str:
    return format_duration(seconds * MS_PER_SECOND)


def _safe(text: str) -> str:
    return escape(one_line(text, _LIMIT))
