"""Rules as they are typed, and which of them the fleet is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.errors import UsageError
from gua_fleet.merge_rules import FleetRules, fleet_rules, other_rules, parse_rule, rule_argument
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


def host(name: str, *rules: dict[str, int], cards: Sequence[dict[str, Any]] = ()) -> HostResult:
    document = report(list(cards) or [card(f"GPU-{name}", states(1))], rules=list(rules), store_id=name)
    return HostResult(Host(name, name), Outcome.OK, document=document)


def t4(own_rule: dict[str, int] | None) -> dict[str, Any]:
    return card("GPU-t4", states(1), name="Tesla T4", own_rule=own_rule)


OTHER, OWN = RULE | {"held_mb": 7}, RULE | {"active_util_pct": 1}
H100 = card("GPU-h", states(1), own_rule=None)


def test_fleets_rule_is_that_of_most_hosts_whatever_their_order() -> None:
    results = [host("0", RULE), host("1", OTHER), host("2", OTHER, RULE), host("3", OTHER)]
    assert fleet_rules(results) == fleet_rules(results[::-1]) == FleetRules(OTHER)
    assert fleet_rules(results[:2]) == fleet_rules(results[1::-1])
    odd = RULE | {"active_util_pct": 0, "long_idle_s": 0}  # nobody could ask for it, and a host may still say it
    assert fleet_rules([host("a", odd)]) == FleetRules(odd)
    assert fleet_rules([HostResult(Host("a", "a"), Outcome.UNREACHABLE)]) == FleetRules(None)
    assert fleet_rules(results, OWN) == FleetRules(OWN)


def test_rule_of_a_model_is_never_taken_for_the_fleets_and_counts_where_all_hosts_agree() -> None:
    mixed = [host(name, OWN, RULE, cards=[H100, t4(OWN)]) for name in "abc"]
    only = host("d", OWN, cards=[t4(OWN)])
    assert fleet_rules([*mixed, only]) == FleetRules(RULE, {"Tesla T4": OWN})
    assert other_rules([*mixed, only], fleet_rules([*mixed, only])) == []
    assert fleet_rules([only]) == FleetRules(None, {"Tesla T4": OWN})
    strict = host("e", OTHER)
    assert other_rules([*mixed, strict], fleet_rules([*mixed, strict])) == [strict]


def test_models_own_rules_yield_to_the_fleets_where_hosts_disagree_on_one() -> None:
    own, without = host("a", OWN, RULE, cards=[H100, t4(OWN)]), host("b", RULE, cards=[t4(None)])
    for results in ([own, without], [without, own]):
        assert fleet_rules(results) == FleetRules(RULE)
        assert other_rules(results, fleet_rules(results)) == [own]
    both = [host("a", OWN, cards=[t4(OWN)]), host("b", OTHER, cards=[t4(OTHER)])]
    assert len(other_rules(both, fleet_rules(both))) == 1


def test_models_own_rule_is_another_than_the_one_asked_for() -> None:
    own = host("a", OWN, RULE, cards=[H100, t4(OWN)])
    assert other_rules([own], fleet_rules([own], RULE)) == [own]
