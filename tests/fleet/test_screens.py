"""The documentation shows what the program prints today."""

from __future__ import annotations

import pytest

from gua_fleet.model import NOT_FAILURES, Outcome
from gua_fleet.outcomes import MEANINGS
from tests.screens import BLOCKS, FILES, ROOT, with_blocks


@pytest.mark.parametrize("name", BLOCKS)
def test_document_shows_what_the_program_prints(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert with_blocks(text, BLOCKS[name]) == text, f"{name} is out of date; make screens writes it anew"


@pytest.mark.parametrize("name", FILES)
def test_file_is_what_the_program_writes(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == FILES[name](), f"{name} is out of date; make screens writes it"


def test_every_outcome_has_its_meaning_and_its_cure() -> None:
    assert list(MEANINGS) == list(Outcome)
    assert set(list(Outcome)[-6:]) == NOT_FAILURES - {Outcome.OK}  # as docs/fleet-ssh.md says


def test_block_is_filled_and_the_rest_stays() -> None:
    text = "before\n<!-- screen: a -->\nold\n<!-- end -->\nafter <!-- end -->\n"
    assert with_blocks(text, {"a": lambda: "\\1 new\n"}) == text.replace("old", "\\1 new")


def test_block_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 blocks named a"):
        with_blocks("nothing", {"a": lambda: "new\n"})
