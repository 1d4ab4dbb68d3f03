"""Who holds what now, what is free, and what nobody can know."""

from __future__ import annotations

from typing import Any

import pytest

from gua.report.cells import gigabytes
from gua.report.narrow import narrowed
from gua.report.presence import now as now_section
from gua.report.presence import users as users_section
from gua.report.render_text import render_report
from tests.documents import card, now, report, states, user

HOLDER = {
    "user": "ada",
    "process": "python",
    "pid": 7,
    "memory_mb": 4096,
    "type": "compute",
    "since": "2026-03-02T08:59:50Z",
}
HELD = now("idle-held", since="2026-03-02T10:59:50Z", holders=[HOLDER])
HOLD = {"user": "ada", "process": "python", "pid": 7, "card": "GPU-a", "since": "2026-03-02T08:59:50Z", "until": None}


def lines_of(document: Any) -> str:
    return " ".join(now_section(document).lines)


def row_of(document: Any) -> dict[str, Any]:
    (table,) = now_section(document).tables
    (row,) = table.rows
    return dict(zip(table.headers, row))


def test_a_holder_is_told_with_since_when_he_holds_and_the_card_is_as_it_is() -> None:
    assert row_of(report([card("GPU-a", states(held=60), now=HELD)])) == {
        "#": "0",
        "user": "ada",
        "process": "python",
        "pid": "7",
        "GB": "4.0",
        "held for": "3 h 00 min",
        "state": "idle-held",
        "for": "1 h 00 min",
    }


def test_a_hint_of_mounts_is_told_as_a_hint() -> None:
    seen = {**HELD, "holders": [{**HOLDER, "user": "container:3f9c", "mounts": "ada"}]}
    assert row_of(report([card("GPU-a", states(held=60), now=seen)]))["user"] == "container:3f9c (mounts ada's)"


def test_old_data_is_stale_and_no_card_of_it_is_called_free() -> None:
    old = {"at": "2026-03-02T11:58:30Z", "since": "2026-03-02T08:00:00Z"}
    document = report(
        [card("GPU-a", states(held=60), now={**HELD, **old}), card("GPU-b", states(idle=60), now=now(**old))]
    )
    assert row_of(document)["state"] == "stale"
    assert "Free" not in lines_of(document)
    assert "2 of 2 cards were not sampled lately: free or not, nobody knows." in lines_of(document)


def test_free_cards_are_named_with_their_memory_and_since_when() -> None:
    document = report([card("GPU-a", states(idle=60), index=3), card("GPU-b", states(60), now=now("active"))])
    assert "Free: card 3 (H100 80GB HBM3, 80 GB, for 59 min)." in lines_of(document)
    assert "Free: none." in lines_of(report([card("GPU-b", states(60), now=now("active"))]))


def test_a_scheduler_s_idle_cards_are_not_called_free() -> None:
    document = report([card("GPU-a", states(idle=60))])
    document["host"]["scheduler"] = "slurm"
    assert "given out by slurm, so not called free: card 0" in lines_of(document)
    assert "Free:" not in lines_of(document)


def test_an_unknown_card_is_told_with_the_reason_in_words() -> None:
    lost = now("unknown", reason="card_lost")
    assert "Unknown: card 0, the card did not answer." in lines_of(report([card("GPU-a", states(unknown=9), now=lost)]))


def test_a_report_of_one_user_names_nobody_else() -> None:
    other = {**HOLDER, "user": "ben", "pid": 8}
    document = report(
        [card("GPU-a", states(held=60), now={**HELD, "holders": [HOLDER, other]})],
        [user("ada", states(held=60)), user("ben", states(held=60))],
        holds=[HOLD, {**HOLD, "user": "ben", "pid": 8}],
    )
    one: Any = narrowed(document, "ada")  # type: ignore[arg-type]
    assert "ben" not in str(one)
    assert (one["user"], one["card_s"]) == ("ada", document["card_s"])
    nobody: Any = narrowed(document, "eve")  # type: ignore[arg-type]
    assert users_section(nobody).lines == ("eve held no card in this window, as far as it was seen.",)
    assert "No process of eve is listed" in lines_of(nobody)
    assert "no listed process accounts for" not in lines_of(nobody)


def test_a_report_of_one_user_tells_what_is_theirs_and_what_is_the_hosts() -> None:
    ada = {**user("ada", states(held=7200)), "idle_held_card_s": 7200, "idle_held_long_card_s": 3600, "cards": 1}
    document: Any = report([card("GPU-a", states(held=7200))], [ada, user("ben", states(held=60))])
    document["coverage"]["expected_card_s"] = 7200
    text = " ".join(render_report(narrowed(document, "ada")).split())
    assert "ada held 1 card for 2.00 GPU-hours: 2.00 of them without work, 1.00 of those in long stretches." in text
    assert "1. Where the card time went (whole host)" in text
    assert "4. Who held the cards user" in text
    assert "eve held no card in this window" in render_report(narrowed(document, "eve"))
    assert "whole host" not in render_report(document)


@pytest.mark.parametrize(
    ("mb", "shown"), [(None, "-"), (0, "0"), (1, "<0.1"), (512, "0.5"), (10_188, "9.9"), (10_240, "10"), (81_559, "80")]
)
def test_gigabytes_never_make_something_of_nothing_or_nothing_of_something(mb: Any, shown: str) -> None:
    assert gigabytes(mb) == shown
