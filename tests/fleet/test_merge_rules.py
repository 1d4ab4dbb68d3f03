"""Rules as they are typed, and which of them the fleet is judged by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.errors import UsageError
from gua_fleet.merge_rules import common_rule, parse_rule, rule_argument
from gua_fleet.model import Host, HostResult, Outcome
from tests.documents import RULE, card, report, states


def test_rule_says_only_what_differs_from_the_default() -> None:
    assert parse_rule("active=5, held=200") == RULE | {"active_util_pct": 5, "held_mb": 200}
    assert parse_rule("long=1h")["long_idle_s"] == 3600
    assert parse_rule("long-idle=60,unattributed-v1=7") == RULE | {"long_idle_s": 60, "unattributed_v1_mb": 7}


@pytest.mark.parametrize("text", ["", "active", "active=", "active=x", "held=-1", "heat=3", "active=101", "held=1h"])
def test_rule_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match="--rules"):
        parse_rule(text)


@given(st.integers(1, 100), *[st.integers(0, 10**6)] * 3, st.integers(1, 10**6))
def test_rule_survives_being_sent_to_a_host(active: int, held: int, some: int, v1: int, long: int) -> None:
    rule = dict(zip(RULE, (active, held, some, v1, long), strict=True))
    assert parse_rule(rule_argument(rule)) == rule


def test_common_rule_is_that_of_most_hosts_whatever_their_order() -> None:
    other = RULE | {"held_mb": 7}
    rules = [[RULE], [other], [other, RULE], [other]]
    results = [
        HostResult(Host(str(n), "x"), Outcome.OK, document=report([card("GPU", states(1))], rules=one))
        for n, one in enumerate(rules)
    ]
    assert common_rule(results) == common_rule(results[::-1]) == other
    assert common_rule(results[:2]) == common_rule(results[1::-1])
    odd = RULE | {"active_util_pct": 0, "long_idle_s": 0}  # nobody could ask for it, and a host may still say it
    answer = report([card("GPU", states(1))], rules=[odd])
    assert common_rule([HostResult(Host("a", "a"), Outcome.OK, document=answer)]) == odd
    assert common_rule([HostResult(Host("a", "a"), Outcome.UNREACHABLE)]) is None
