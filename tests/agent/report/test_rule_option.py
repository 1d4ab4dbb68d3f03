"""Thresholds as they are typed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gua.errors import UsageError
from gua.model import DEFAULT_RULE
from gua.report.rule_option import parse_rule


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("active=5,held=500", {"active_util_pct": 5, "held_mb": 500}),
        (" active = 1 ", {"active_util_pct": 1}),
        ("held=0", {"held_mb": 0}),
        ("unattributed=1,unattributed_v1=2", {"unattributed_mb": 1, "unattributed_v1_mb": 2}),
        ("long=1h", {"long_idle_s": 3600}),
        ("active_util_pct=20", {"active_util_pct": 20}),
    ],
)
def test_what_is_named_changes_and_the_rest_stays(text: str, changed: dict[str, int]) -> None:
    base = replace(DEFAULT_RULE, unattributed_mb=777)
    assert parse_rule(text, base) == replace(base, **changed)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no threshold"),
        ("active", "no threshold"),
        ("idle=5", "'idle=5'"),
        ("active=0", "1 to 100"),
        ("active=101", "1 to 100"),
        ("active=5,active=6", "twice"),
        ("held=-1", "no whole number"),
        ("held=٣", "no whole number"),
        ("held=5.5", "no whole number"),
        ("held=99999999999", "no whole number"),
        ("long=soon", "not a duration"),
        ("long=200ms", "less than a second"),
    ],
)
def test_what_cannot_be_understood_is_named(text: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        parse_rule(text, DEFAULT_RULE)
