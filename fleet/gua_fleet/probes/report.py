"""The question of `gua-fleet report`: one host's own report over a window given in absolute times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from gua.coverage import SLOT_MS
from gua.report.document import SCHEMA
from gua.units import MS_PER_SECOND, parse_time_ms, to_iso
from gua_fleet.merge_rules import Rule, rule_argument
from gua_fleet.model import Document
from gua_fleet.probes.probe import Probe
from gua_fleet.sums import STATE_NAMES

_STATES = itemgetter(*STATE_NAMES)
# Amounts are rounded to milliseconds one by one, so sums of them may differ by this much.
_ROUNDING_S = 1.0


def report_probe(*, since_ms: int, until_ms: int, tz: str, rule: Rule | None = None) -> Probe:
    """Ask for the report over [since_ms, until_ms), Unix UTC milliseconds, its hours told in zone `tz`.

    rule: judge the raw ticks by it; None: as they were judged.
    """
    rules = () if rule is None else ("--rules", rule_argument(rule))
    window = ("--since", to_iso(since_ms), "--until", to_iso(until_ms), "--tz", tz)

    def doubt(document: Document) -> str | None:
        return _window_problem(document, since_ms, until_ms) or _sum_problem(document)

    return Probe("report", SCHEMA, ("report", "--format", "json", *window, *rules), doubt=doubt)


def _window_problem(document: Document, since_ms: int, until_ms: int) -> str | None:
    """A host may widen the window to slot edges, and end it early where its clock is behind."""
    first, end = _window_ms(document)
    if since_ms - SLOT_MS < first <= since_ms < end < until_ms + SLOT_MS:
        return None
    window = document["window"]
    return f"it reports on {window['since']} to {window['until']}, which was not asked: upgrade the agent there"


def _sum_problem(document: Document) -> str | None:
    """One host that says impossible amounts would spoil the sums of all."""
    first, end = _window_ms(document)
    window_s = (end - first) / MS_PER_SECOND
    cards, users, coverage = document["cards"], document["users"], document["coverage"]
    expected, observed = coverage["expected_card_s"], coverage["observed_card_s"]
    spent = _all_states(document["card_s"])
    doubts = (
        (_more(expected, len(cards) * window_s), "expects more card time than its cards have in the window"),
        (_differ(observed, spent), "sums of the states are not what it observed"),
        (_differ(expected, observed + coverage["unobserved_card_s"]), "observed and unobserved are not the expected"),
        (_differ(spent, sum(_all_states(card["card_s"]) for card in cards)), "the cards do not make up the host"),
        (len({card["uuid"] for card in cards}) < len(cards), "a card is in it twice"),
        (_more(_unmeasured(cards), document["card_s"]["unknown"]), "more held time was not measured than is unknown"),
        (_any_more((user["share_s"] for user in users), spent), "a user's share is more than was observed"),
        (_any_more(_of_persons(users), spent), "a user has more card time than was observed"),
        (_any_more(_of_hours(document), spent), "an hour of the week has more card time than was observed"),
    )
    problem = next((text for wrong, text in doubts if wrong), None)
    return f"its report contradicts itself ({problem}): run `gua doctor` there, upgrade the agent" if problem else None


def _unmeasured(cards: Iterable[Mapping[str, Any]]) -> float:
    """Held time without a measure; older agents do not say it."""
    return sum(card.get("held_unmeasured_s") or 0.0 for card in cards)


def _window_ms(document: Document) -> tuple[int, int]:
    return parse_time_ms(document["window"]["since"]), parse_time_ms(document["window"]["until"])


def _all_states(states: Mapping[str, float]) -> float:
    total: float = sum(_STATES(states))
    return total


def _of_persons(users: Iterable[Mapping[str, Any]]) -> Iterator[float]:
    """Card time of each user that is one: `(expired)` is many, who may all have held the same card."""
    return (user[key] for user in users for key in ("card_s", "idle_held_card_s") if not user["user"].startswith("("))


def _of_hours(document: Document) -> Iterator[float]:
    return (_all_states(hour["card_s"]) for hour in document["hours_of_week"])


def _more(amount: float, most: float) -> bool:
    return amount > most * 1.001 + _ROUNDING_S


def _any_more(amounts: Iterable[float], most: float) -> bool:
    return any(_more(amount, most) for amount in amounts)


def _differ(one: float, other: float) -> bool:
    return _more(one, other) or _more(other, one)
