"""The evidence behind figures: it adds up to the report's, to the millisecond, and says why there is none."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from gua.errors import UsageError
from gua.ledger import explained
from gua.ledger.explain_card import explain_card
from gua.ledger.explain_user import explain_user
from gua.ledger.explained import CardAnswer, UserAnswer
from gua.ledger.gaps import Background, Gap, gaps_of
from gua.ledger.page import render_md, render_text
from gua.ledger.render_explain import explain_page
from gua.model import Mig, Reason, Tick, TickStatus
from gua.schemas import load_schema
from gua.store.database import open_reader
from gua.store.ledger import LifeRow
from tests.agent.store.histories import History, with_window
from tests.agent.store.opened import SetClock, report, steady, stored, writing
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder, tick

FIGURES = (*("card_s", "share_s", "shared_card_s", "states", "idle_held_card_s", "idle_held_long_card_s", "samples"),)


def history() -> list[Tick]:
    """An hour: ada alone for 20 minutes, with ben for 10, nothing for 10, the card lost for 20."""
    ada, again = holder("ada", 100, memory_mb=20_480), holder("ada", 101, memory_mb=1_000)
    both = card("GPU-a", 80, (ada, again, holder("ben", 200)))
    cards = [card("GPU-a", minute % 3, (ada,)) for minute in range(20)] + [both] * 10
    cards += [card("GPU-a", absent=Reason.CARD_LOST)] * 30
    return [
        tick(MONDAY + n * MINUTE, one, cover_ms=MINUTE, status=TickStatus.OK if n < 30 else TickStatus.PARTIAL)
        for n, one in enumerate(cards)
        if not 30 <= n < 40
    ]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("explain") / "gua.db", history(), interval_ms=MINUTE)


def of_user(path: Path, user: str, since_ms: int = MONDAY, until_ms: int = MONDAY + HOUR, **more: Any) -> Any:
    asked = {"since_ms": since_ms, "until_ms": until_ms, "now_ms": until_ms, **more}
    return explain_user(lambda: open_reader(path), user, **asked, zone_name="UTC")


def of_card(path: Path, at_ms: int, wanted: str = "0", now_ms: int = MONDAY + HOUR) -> Any:
    with open_reader(path) as reader:
        return explain_card(reader, wanted, at_ms=at_ms, now_ms=now_ms, zone_name="UTC")


def words(document: Any, **more: Any) -> str:
    """The page with its lines joined, so that no break is in the way."""
    return " ".join(render_text(explain_page(document), **more).split())


def test_a_users_figure_is_told_card_by_card_and_share_by_share(path: Path) -> None:
    document = of_user(path, "ada")
    Draft202012Validator(load_schema("gua.explain.1")).validate(document)
    answer: UserAnswer = document["user"]
    (one,) = answer["cards"]
    assert [(part["users"], part["card_s"], part["share_s"]) for part in one["sharing"]] == [
        (1, 1_200, 1_200),
        (2, 600, 300),
    ]
    assert (one["counted_once_s"], answer["report"], answer["total"]) == (600, one["total"], one["total"])
    assert [(hold["pid"], hold["card_s"]) for hold in one["holds"]] == [(100, 1_800), (101, 600)]
    assert [(part["ticks"], part["util_pct"], part["state"]) for part in one["stretches"]] == [
        (20, [0, 2], "idle-held"),
        (10, [80, 80], "active"),
    ]
    text = words(document)
    assert (
        "Seen from 2026-03-02 00:00:00 to 2026-03-02 00:20:00, 20 ticks: utilisation 0-2 %, 20,480 MB held by python "
        "(pid 100): idle-held." in text
    )
    assert "0.17 h together with 1 other user, divided by 2: 0.08 share hours." in text
    assert "ben" not in text


@settings(max_examples=15, deadline=None)
@given(with_window())
def test_the_figure_explained_is_the_figure_reported(case: tuple[History, int, int]) -> None:
    found, since_s, until_s = case
    with tempfile.TemporaryDirectory() as folder:
        path = found.write(Path(folder) / "gua.db")
        now_ms = max(found.end_ms, until_s * 1000)
        window = (since_s * 1000, until_s * 1000)
        for user in report(path, *window, now_ms=now_ms)["users"]:
            answer = of_user(path, user["user"], *window, now_ms=now_ms)["user"]
            assert answer["report"] == {name: user[name] for name in FIGURES}  # type: ignore[literal-required]
            assert answer["total"] == answer["report"]


def test_where_single_ticks_are_gone_their_sums_are_used_and_said(path: Path, tmp_path: Path) -> None:
    copy = without_raw_before(path, tmp_path, MONDAY + 15 * MINUTE)
    document = of_user(copy, "ada")
    (one,) = document["user"]["cards"]
    assert (one["rolled_up"]["card_s"], one["rolled_up"]["share_s"]) == (900, 900)
    assert [(part["users"], part["card_s"]) for part in one["sharing"]] == [(1, 300), (2, 600)]
    assert document["user"]["total"] == document["user"]["report"]
    assert "only sums by quarter-hour are left" in words(document)
    answer: CardAnswer = of_card(copy, MONDAY + 5 * MINUTE)["card"]
    assert (answer["tick"], answer["gap"]) == (None, None)
    assert answer["rolled_up"] is not None
    assert answer["rolled_up"]["holders"] == [{"user": "ada", "card_s": 900}]
    assert answer["rollups_begin"] == "2026-03-02T00:00:00Z"
    assert "Held by ada for 15 min of it." in words(of_card(copy, MONDAY + 5 * MINUTE))


def without_raw_before(path: Path, folder: Path, ms: int) -> Path:
    copy = folder / "gua.db"
    copy.write_bytes(path.read_bytes())
    connection = sqlite3.connect(copy)
    connection.execute("DELETE FROM sample WHERE id >> 16 IN (SELECT id FROM tick WHERE ts_ms < ?)", (ms,))
    connection.execute("DELETE FROM tick WHERE ts_ms < ?", (ms,))
    connection.execute("UPDATE store SET raw_since_ms = ?", (ms,))
    connection.commit()
    connection.close()
    return copy


def test_the_tick_of_a_moment_with_what_decided_and_who_named_whom(path: Path) -> None:
    document = of_card(path, MONDAY + 5 * MINUTE + 30_000)
    Draft202012Validator(load_schema("gua.explain.1")).validate(document)
    answer: CardAnswer = document["card"]
    assert answer["tick"] is not None
    assert (answer["tick"]["at"], answer["tick"]["state"]) == ("2026-03-02T00:05:00Z", "idle-held")
    assert [one["margin"] for one in answer["tick"]["decision"]["comparisons"]] == [8, 20_380]
    assert answer["stretch"] is not None
    assert (answer["stretch"]["since"], answer["stretch"]["until"]) == ("2026-03-02T00:00:00Z", "2026-03-02T00:20:00Z")
    text = words(document)
    assert "user ada, named by the process's owner, an ordinary account" in text
    assert "20,480 MB, 20,380 MB above the threshold of 100 MB: idle-held" in text
    assert answer["tick"] in answer["around"]


def test_what_goes_on_to_this_moment_is_not_said_to_go_on_where_nobody_looked(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [tick(MONDAY + n * MINUTE, card(), cover_ms=MINUTE) for n in range(3)])
    for now_ms in (
        MONDAY + 2 * MINUTE,
        MONDAY + 2 * MINUTE + 500,
    ):  # in the newest sample's time, and in no later one's
        document = of_card(path, now_ms, now_ms=now_ms)
        assert document["card"]["stretch"] is not None
        assert "may go on" not in words(document)


def test_a_lost_card_is_unknown_with_its_reason_and_names_nobody(path: Path) -> None:
    document = of_card(path, MONDAY + 50 * MINUTE)
    tick_told = document["card"]["tick"]
    assert (tick_told["state"], tick_told["reason"], tick_told["holders"]) == ("unknown", "card_lost", None)
    assert "the card did not answer: unknown" in words(document)
    assert "Not known: every reading." in words(document)


def test_a_moment_that_nobody_saw_is_a_gap_with_its_reason(path: Path) -> None:
    document = of_card(path, MONDAY + 35 * MINUTE)
    gap = document["card"]["gap"]
    assert (gap["since"], gap["until"], gap["why"]) == ("2026-03-02T00:30:00Z", "2026-03-02T00:40:00Z", "no_daemon")
    assert "Not seen: from 2026-03-02 00:30:00 to 2026-03-02 00:40:00" in words(document)
    assert of_card(path, MONDAY - HOUR)["card"]["gap"]["why"] == "not_known_yet"


def test_samples_that_come_a_little_late_are_summed_and_no_list_of_gaps(tmp_path: Path) -> None:
    ticks = [
        tick(MONDAY + n * (MINUTE + 250), card("GPU-a", holders=(holder("ada"),)), cover_ms=MINUTE) for n in range(50)
    ]
    document = of_user(stored(tmp_path / "gua.db", ticks, interval_ms=MINUTE), "ada")
    (one,) = document["user"]["cards"]
    assert (one["late_s"], one["total"]["card_s"]) == (49 * 0.25, 3_000)
    assert [gap["since"] for gap in one["gaps"]] == ["2026-03-02T00:50:12.250Z"]
    assert "less than a second each time: 12 s together" in words(document)


def test_a_gap_is_told_in_the_zone_of_its_page_and_may_go_on_beyond_what_was_looked_at(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [tick(MONDAY, card(), cover_ms=MINUTE)], clock=SetClock(MONDAY - MINUTE))
    with writing(path, clock=SetClock(MONDAY + 96 * HOUR)):
        pass
    told = []
    for hours in (1, 48, 80):
        with open_reader(path) as reader:
            document = explain_card(
                reader, "0", at_ms=MONDAY + hours * HOUR, now_ms=MONDAY + 97 * HOUR, zone_name="Asia/Tokyo"
            )
        told.append(words(document))
    assert "Not seen: from 2026-03-02 09:01:00 to 2026-03-03 10:00:00" in told[0]
    assert "It may go on after: only a day" in told[0]
    assert "It may go on before and after" in told[1]
    assert "the next one began 2026-03-06 09:00:00" in told[2]
    assert "Z" not in "".join(told).replace("Zone", "")


def test_what_cannot_be_answered_ends_in_one_line(path: Path) -> None:
    with pytest.raises(UsageError, match="still to come"):
        of_card(path, MONDAY + 2 * HOUR)
    with pytest.raises(UsageError, match="no such card; this history has 0 GPU-a"):
        of_card(path, MONDAY, "GPU-x")
    with pytest.raises(UsageError, match="never named such a user"):
        of_user(path, "eve")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_pages_fit_their_columns(path: Path, width: int) -> None:
    for document in (of_user(path, "ada"), of_card(path, MONDAY)):
        text = render_text(explain_page(document), width=width)
        assert max(map(len, text.splitlines())) <= width
        assert render_md(explain_page(document)).startswith("# ")


@pytest.mark.parametrize(
    "shape",
    [
        *(explained.ComparisonInfo, explained.DecisionInfo, explained.SeenHolder, explained.TickInfo),
        *(explained.StretchHolder, explained.StretchInfo, explained.GapInfo, explained.SlotHolder),
        *(explained.RolledUp, explained.Sharing, explained.UserFigure, explained.UserHold, explained.UserCard),
        *(explained.CardAnswer, explained.UserAnswer),
    ],
)
def test_the_schema_describes_the_fields_of_the_type(shape: Any) -> None:
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in shape.__name__)[1:]
    found = load_schema("gua.explain.1")["$defs"][name]
    assert set(found["properties"]) == set(found["required"]) == set(shape.__annotations__)


@pytest.mark.parametrize(
    ("first", "wanted", "why", "told"),
    [
        ("cut", "MIG-1", "card_whole", "the card was not cut into MIG instances then"),
        ("whole", "GPU-a", "in_instances", "the card was cut into MIG instances, each of which was seen"),
    ],
)
def test_a_card_that_was_cut_or_whole_in_between_was_seen_as_the_other(
    tmp_path: Path, first: str, wanted: str, why: str, told: str
) -> None:
    forms = {"whole": card("GPU-a", pci="0:1"), "cut": card("MIG-1", pci="0:1", mig=Mig("GPU-a", "1g.10gb"))}
    begin, between = forms.pop(first), *forms.values()
    ticks = [*steady(10, begin), *steady(20, between, start=10), *steady(30, begin, start=30)]
    document = of_card(stored(tmp_path / "gua.db", ticks, interval_ms=MINUTE), MONDAY + 20 * MINUTE, wanted)
    Draft202012Validator(load_schema("gua.explain.1")).validate(document)
    gap = document["card"]["gap"]
    assert (gap["since"], gap["until"], gap["why"]) == ("2026-03-02T00:10:00Z", "2026-03-02T00:30:00Z", why)
    assert told in words(document)


def test_a_gap_is_cut_where_its_reason_changes() -> None:
    lives = [LifeRow("daemon", 0, 100, "1"), LifeRow("daemon", 200, None, "1"), LifeRow("daemon", 400, None, "1")]
    background = Background(
        known_from_ms=0,
        retired_ms=900,
        now_ms=1_000,
        pauses=[(500, 600)],
        lives=lives,
        cut=[(750, 780)],
        whole=[(780, 790)],
    )
    found = gaps_of((-50, 1_100), [(0, 100), (210, 300), (400, 480), (700, 740)], background)
    assert found == [
        Gap(-50, 0, "not_known_yet"),
        Gap(100, 210, "no_daemon", 100, 200),
        Gap(300, 400, "daemon_silent", None, 400),
        Gap(480, 500, "not_sampled"),
        Gap(500, 600, "paused"),
        Gap(600, 700, "not_sampled"),
        Gap(740, 750, "not_sampled"),
        Gap(750, 780, "in_instances"),
        Gap(780, 790, "card_whole"),
        Gap(790, 900, "not_sampled"),
        Gap(900, 1_000, "retired"),
        Gap(1_000, 1_100, "future"),
    ]
