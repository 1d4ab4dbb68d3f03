from dataclasses import replace
from typing import Optional

import pytest

from gua.model import DEFAULT_RULE
from gua.rulebook import ModelRule, RuleBook

T4 = replace(DEFAULT_RULE, active_util_pct=3)
SLICE = replace(DEFAULT_RULE, held_mb=50)
REST = replace(DEFAULT_RULE, long_idle_s=60)
BOOK = RuleBook(DEFAULT_RULE, (ModelRule("*T4*", T4), ModelRule("*MIG [12]g.*", SLICE), ModelRule("nvidia*", REST)))


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("Tesla T4", T4),
        ("tesla t4", T4),
        ("NVIDIA T400 4GB", T4),  # the first that fits, though the last one does too
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", SLICE),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", REST),
        ("GeForce GTX 1080 Ti", DEFAULT_RULE),
        ("", DEFAULT_RULE),
        (None, DEFAULT_RULE),
    ],
)
def test_the_first_pattern_that_fits_a_cards_name_gives_its_rule(name: Optional[str], rule: object) -> None:
    assert BOOK.for_card(name) == rule
    assert BOOK.own_rule(name) == (None if rule is DEFAULT_RULE else rule)


def test_without_patterns_every_card_has_the_default_rule() -> None:
    assert RuleBook(T4).for_card("Tesla T4") == T4
    assert RuleBook(T4).own_rule("Tesla T4") is None


def test_a_models_rule_that_says_the_same_as_the_default_is_no_rule_of_its_own() -> None:
    assert RuleBook(T4, (ModelRule("*", T4),)).own_rule("Tesla T4") is None
