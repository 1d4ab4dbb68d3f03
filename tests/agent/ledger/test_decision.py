"""The comparisons told are those that decide: moved over the threshold, the state follows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gua.classify import classify
from gua.ledger.decision import decide
from gua.model import DEFAULT_RULE, Evidence, Reason, Rule, State

amounts = st.sampled_from([0, 1, 99, 100, 101, 499, 500, 501, 1_499, 1_500, 1_501, 40_000])
evidences = st.builds(
    Evidence,
    absent=st.sampled_from([None] * 6 + [Reason.CARD_LOST, Reason.DRIVER]),
    util_pct=st.sampled_from([None, 0, 9, 10, 11, 100]),
    holders=st.sampled_from([None, 0, 1, 3]),
    held_mb=amounts,
    held_unknown=st.booleans(),
    unattributed_mb=st.one_of(st.none(), amounts),
    graphics_unknown=st.booleans(),
    memory_v1=st.booleans(),
    unified=st.booleans(),
    mig=st.booleans(),
)
rules = st.builds(
    Rule,
    active_util_pct=st.sampled_from([1, 10, 50]),
    held_mb=st.sampled_from([0, 100, 20_000]),
    unattributed_mb=st.sampled_from([0, 500]),
    unattributed_v1_mb=st.sampled_from([0, 1_500]),
)


@given(evidences, rules)
def test_the_state_told_is_the_one_that_was_given(evidence: Evidence, rule: Rule) -> None:
    assert decide(evidence, rule).state is classify(evidence, rule).state


@given(evidences, rules)
def test_every_comparison_is_true_and_what_holds_above_did_decide(evidence: Evidence, rule: Rule) -> None:
    decision = decide(evidence, rule)
    for one in decision.comparisons:
        assert one.limit == getattr(rule, one.threshold)
        at_least = one.threshold == "active_util_pct"
        assert one.over == (one.value >= one.limit if at_least else one.value > one.limit)
    assert [one.over for one in decision.comparisons[:-1]] == [False] * len(decision.comparisons[:-1])


@given(evidences, rules)
def test_moving_the_last_threshold_over_the_reading_changes_the_state_or_what_decides(
    evidence: Evidence, rule: Rule
) -> None:
    decision = decide(evidence, rule)
    if not decision.comparisons or decision.because is not None:
        return
    last = decision.comparisons[-1]
    limit = last.value + 1 if last.over else last.value - (last.threshold != "active_util_pct")
    if limit < 0:
        return  # no threshold lies below a reading of nothing
    moved = decide(evidence, replace(rule, **{last.threshold: limit}))
    other_step = moved.because is not None or moved.comparisons[-1].threshold != last.threshold
    assert moved.state is not decision.state or other_step


def test_the_words_name_reading_threshold_and_how_far() -> None:
    held = decide(Evidence(util_pct=2, holders=1, held_mb=20_480, unattributed_mb=3), DEFAULT_RULE)
    assert held.text == (
        "utilisation 2 %, 8 points below the threshold of 10 %; compute processes hold 20,480 MB, 20,380 MB above the "
        "threshold of 100 MB: idle-held"
    )
    at = decide(Evidence(util_pct=10, holders=0), DEFAULT_RULE)
    assert at.text == "utilisation 10 %, just the threshold of 10 %, which counts as active: active"
    blind = decide(Evidence(util_pct=3, holders=None), DEFAULT_RULE)
    assert blind.state is State.UNKNOWN
    assert "who holds the card is not known" in blind.text
    lost = decide(Evidence(absent=Reason.CARD_LOST), DEFAULT_RULE)
    assert lost.text == "the card did not answer: unknown"
