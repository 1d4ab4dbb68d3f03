"""What is true of the merge of any hosts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gua_fleet.merge import sums_of_result
from gua_fleet.model import HostResult, Outcome, Seen
from gua_fleet.sums import FleetSums, add_all
from tests.documents import RULE, WINDOW_S, card, report, states, user
from tests.fleet.merging import STRICT, answer, merge, silent

amounts = st.floats(min_value=0, max_value=1e6, allow_nan=False, allow_subnormal=False)
state_maps = st.builds(states, amounts, amounts, amounts, amounts)
names = st.sampled_from(["alice", "bob", "uid:7", "unknown"])


@st.composite
def results(draw: st.DrawFn) -> list[HostResult]:
    """A few hosts of any outcome, each its own agent."""
    hosts = []
    for number in range(draw(st.integers(0, 6))):
        fields = {
            "groups": tuple(draw(st.sets(st.sampled_from(["all", "g1", "g2"])))),
            "cards": draw(st.none() | st.integers(0, 8)),
        }
        if draw(st.booleans()):
            hosts.append(silent(f"h{number}", draw(st.sampled_from([Outcome.UNREACHABLE, Outcome.NO_GPU])), **fields))
            continue
        cards = [
            card(
                f"GPU-{number}-{place}",
                draw(state_maps),
                name=draw(st.sampled_from(["H100", "A100"])),
                mig=draw(st.sampled_from([None, {"parent_uuid": f"GPU-{number}", "profile": "1g.10gb"}])),
                energy_j=draw(st.none() | state_maps),
                energy_known_s=draw(amounts),
            )
            for place in range(draw(st.integers(0, 2)))
        ]
        users = [
            user(name, draw(state_maps), share_s=draw(amounts), energy_j=draw(st.none() | amounts))
            for name in draw(st.sets(names))
        ]
        hours = [{"weekday": 0, "hour": draw(st.integers(0, 23)), "card_s": draw(state_maps)}]
        rules = draw(st.sampled_from([[RULE], [RULE], [STRICT], [RULE, STRICT], []]))
        document = report(cards, users, store_id=str(number), hours_of_week=hours, rules=rules)
        hosts.append(answer(f"h{number}", document, **fields))
    return hosts


def total(parts: list[HostResult]) -> FleetSums:
    return add_all(sums_of_result(part, window_s=WINDOW_S, tz="Etc/UTC") for part in parts)


@given(results(), st.integers(0, 2**32))
def test_sums_of_any_partition_equal_the_sum_of_all(fleet: list[HostResult], seed: int) -> None:
    order = random.Random(seed)
    parts: list[list[HostResult]] = [[] for _ in range(3)]
    for host in fleet:
        parts[order.randrange(3)].append(host)
    order.shuffle(parts)
    assert add_all(total(part) for part in parts) == total(fleet)


@settings(max_examples=50)
@given(results(), st.randoms())
def test_merge_does_not_depend_on_the_order_of_the_hosts(fleet: list[HostResult], order: random.Random) -> None:
    shuffled = list(fleet)
    order.shuffle(shuffled)
    left, right = merge(*fleet), merge(*shuffled)
    listed = {"hosts", "apart", "free", "scheduler_idle", "not_measurable", "holds", "findings"}
    for key in left.keys() - listed:
        assert left[key] == right[key], key
    for key in listed:
        assert sorted(left[key], key=str) == sorted(right[key], key=str)


@settings(max_examples=50)
@given(results())
def test_merge_states_and_unobserved_make_up_what_was_expected(fleet: list[HostResult]) -> None:
    merged = merge(*fleet)
    spent = sum(merged["card_s"].values()) + merged["coverage"]["unobserved_card_s"]
    # a document's own card may be observed longer than expected here, because the drawn states are free
    assert abs(spent - merged["coverage"]["expected_card_s"]) < 0.01


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[HostResult], dict[str, Seen]]:
    """Hosts as `results`, some of them under a second name too, in any order; some silent ones seen before."""
    fleet = draw(results())
    answered = [result for result in fleet if result.document is not None]
    again = draw(st.lists(st.sampled_from(answered), max_size=2, unique_by=id)) if answered else []
    fleet += [answer(f"{draw(st.sampled_from('az'))}-{one.host.name}", one.document or {}) for one in again]
    silent_names = [result.host.name for result in fleet if result.document is None]
    seen = {name: Seen("2026-02-28T00:00:00Z", draw(st.integers(0, 4))) for name in silent_names if draw(st.booleans())}
    return draw(st.permutations(fleet)), seen


def cards_known(result: HostResult, seen: dict[str, Seen]) -> int:
    if result.outcome is Outcome.NO_GPU:
        return 0
    return (
        result.host.cards
        if result.host.cards is not None
        else seen[result.host.name].cards
        if result.host.name in seen
        else 0
    )


@settings(max_examples=60)
@given(fleets())
def test_merge_is_what_each_agent_says_once_by_one_rule_and_the_silent_ones_unseen(
    drawn: tuple[list[HostResult], dict[str, Seen]],
) -> None:
    fleet, seen = drawn
    merged = merge(*fleet, seen=seen)
    agents = {one.document["host"]["store_id"]: one.document for one in fleet if one.document is not None}
    used = [document for document in agents.values() if all(rule in merged["rules"] for rule in document["rules"])]
    apart = [document for document in agents.values() if document not in used]
    assert len(merged["rules"]) <= 1
    assert len(merged["apart"]) == len(apart)
    assert [row["name"] for row in merged["hosts"]] == [result.host.name for result in fleet]
    assert sum(row["card_s"] is not None for row in merged["hosts"]) == len(used)
    for state in states():
        assert merged["card_s"][state] == pytest.approx(sum(one["card_s"][state] for one in used), abs=1e-3)
    silent_s = WINDOW_S * sum(cards_known(result, seen) for result in fleet if result.document is None)
    expected = {key: sum(one["coverage"][key] for one in used) for key in ("expected_card_s", "unobserved_card_s")}
    apart_s = sum(one["coverage"]["expected_card_s"] for one in apart)
    for key, amount in expected.items():
        assert merged["coverage"][key] == pytest.approx(amount + apart_s + silent_s, abs=1e-3)
    told = sum(one["card_s"] for document in used for one in document["users"])
    assert sum(row["card_s"] for row in merged["users"]) == pytest.approx(told, abs=1e-3)
    by_model = sum(row["expected_card_s"] for row in merged["models"])
    assert by_model == pytest.approx(merged["coverage"]["expected_card_s"], abs=1e-3)
