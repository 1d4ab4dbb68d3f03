import re
from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest

from gua.cards import Cards, ListedCard, answers, find_card, to_document
from gua.errors import UsageError
from gua.model import CardTick, Reason
from gua.render_cards import render_cards
from gua.schemas import load_schema
from gua.store.database import open_reader
from tests.agent.store.opened import stored, writing
from tests.agent.store.ticks import MINUTE, MONDAY, card, tick

A, B, C = "GPU-aaaa1111-0000", "GPU-aaaa2222-0000", "GPU-bbbb3333-0000"


def document(path: Path, now_ms: int) -> Cards:
    import jsonschema

    with open_reader(path) as reader:
        made = to_document(reader.devices(), reader.now(), reader.last_seen_ms(), interval_ms=30_000, now_ms=now_ms)
    jsonschema.Draft202012Validator(load_schema("gua.cards.1")).validate(dict(made))
    return made


def cards_of(b: Optional[Reason] = None) -> tuple[CardTick, ...]:
    return (
        card(A, 50, index=0, pci="00000000:01:00.0"),
        card(B, None if b else 0, index=1, pci="00000000:02:00.0", absent=b),
        card(C, 0, index=2, pci="00000000:03:00.0"),
    )


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Three cards; the second is missing from minute 2 on; the last tick is at minute 5."""
    ticks = [tick(MONDAY + n * MINUTE, *cards_of(Reason.CARD_MISSING if n >= 2 else None)) for n in range(6)]
    return stored(tmp_path / "gua.db", ticks, interval_ms=60_000)


def by_uuid(made: Cards) -> dict[str, ListedCard]:
    return {listed["uuid"]: listed for listed in made["cards"]}


def test_a_missing_card_says_since_when_and_when_it_was_last_seen(history: Path) -> None:
    found = by_uuid(document(history, MONDAY + 5 * MINUTE))
    assert (found[A]["state"], found[C]["state"]) == ("active", "truly-idle")
    gone = found[B]
    assert (gone["state"], gone["reason"], gone["since"]) == ("unknown", "card_missing", "2026-03-02T00:02:00Z")
    assert (gone["first_seen_at"], gone["last_seen_at"]) == ("2026-03-02T00:00:00Z", "2026-03-02T00:01:00Z")
    assert [answers(found[uuid]) for uuid in (A, B, C)] == [True, False, True]


def test_what_is_three_intervals_old_is_no_word_on_now(history: Path) -> None:
    found = by_uuid(document(history, MONDAY + 5 * MINUTE + 90_001))
    assert [found[uuid]["fresh"] for uuid in (A, B, C)] == [False] * 3
    assert not answers(found[A])
    text = render_cards(document(history, MONDAY + 5 * MINUTE + 90_001))
    assert "was active (not seen now)" in text
    assert "was unknown: card_missing since 2026-03-02 00:02 (not seen now)" in text


@pytest.mark.parametrize(
    ("width", "headers"),
    [
        (None, ["index", "card", "UUID", "PCI", "first seen", "last seen", "state"]),
        (200, ["index", "card", "UUID", "PCI", "first seen", "last seen", "state"]),
        (100, ["index", "card", "UUID", "PCI", "last seen", "state"]),
        (80, ["index", "card", "UUID", "last seen", "state"]),
        (10, ["index", "card", "UUID", "state"]),
    ],
)
def test_a_narrow_terminal_gets_the_columns_that_tell_most(
    tmp_path: Path, width: Optional[int], headers: list[str]
) -> None:
    first = cards_of()[0]
    named = replace(first, reading=replace(first.reading, name="NVIDIA H100 80GB HBM3"))
    path = stored(tmp_path / "gua.db", [tick(MONDAY, named)])
    lines = render_cards(document(path, MONDAY), width).splitlines()
    assert re.split(r"  +", lines[0].strip()) == headers
    assert width in (None, 10) or all(len(line) <= width for line in lines)


def test_a_retired_card_has_no_state_and_comes_back_under_its_uuid(history: Path) -> None:
    with writing(history, interval_ms=60_000) as writer:
        assert writer.retire_card(B, MONDAY + 6 * MINUTE)
    retired = by_uuid(document(history, MONDAY + 6 * MINUTE))[B]
    assert (retired["state"], retired["retired_at"]) == (None, "2026-03-02T00:06:00Z")
    assert "retired 2026-03-02 00:06" in render_cards(document(history, MONDAY + 6 * MINUTE))
    with writing(history, interval_ms=60_000) as writer:
        writer.write_tick(tick(MONDAY + 7 * MINUTE, *cards_of()))
    back = by_uuid(document(history, MONDAY + 7 * MINUTE))[B]
    assert (back["retired_at"], back["state"], back["last_seen_at"]) == (None, "truly-idle", "2026-03-02T00:07:00Z")
    assert back["first_seen_at"] == "2026-03-02T00:00:00Z"


def test_a_card_is_found_by_the_beginning_of_its_uuid(history: Path) -> None:
    cards = document(history, MONDAY + 5 * MINUTE)["cards"]
    assert find_card(cards, C)["uuid"] == C
    assert find_card(cards, "GPU-bb")["uuid"] == C
    assert find_card(cards, "AAAA2")["uuid"] == B
    with pytest.raises(UsageError, match=f"could be {A}, {B}"):
        find_card(cards, "GPU-aaaa")
    for wanted in ("", "GPU-cccc", "1"):
        with pytest.raises(UsageError):
            find_card(cards, wanted)


def test_a_whole_uuid_is_that_card_though_another_begins_with_it(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [tick(MONDAY, card("GPU-a", pci="1"), card("GPU-ab", pci="2"))])
    assert find_card(document(path, MONDAY)["cards"], "GPU-a")["uuid"] == "GPU-a"


def test_a_history_without_cards_says_so(tmp_path: Path) -> None:
    assert render_cards(document(stored(tmp_path / "gua.db", []), MONDAY)) == "no card was ever seen here\n"
