"""One meaning for all sums: which rule the fleet is judged by, and which hosts judged by another. Pure.

The text form is the one that `--rules` takes, here and on the hosts:
`active=10,held=100,unattributed=500,unattributed_v1=1500,long=30m` (percent, MiB, MiB, MiB, a duration).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gua.errors import UsageError
from gua.units import MS_PER_SECOND, parse_duration_ms
from gua_fleet.model import Document, HostResult

Rule = Mapping[str, Any]

# word of the text form -> key of the document, with its default
_KEYS: Mapping[str, tuple[str, int]] = {
    "active": ("active_util_pct", 10),
    "held": ("held_mb", 100),
    "unattributed": ("unattributed_mb", 500),
    "unattributed_v1": ("unattributed_v1_mb", 1500),
    "long": ("long_idle_s", 1800),
}
_LONG = "long"
_OTHER_WORDS = {"unattributed-v1": "unattributed_v1", "long-idle": _LONG, "long_idle": _LONG}
_FORM = "write active=10,held=100 (percent, MB), also unattributed=, unattributed_v1= (MB) and long=30m"
_MOST = 10**9


def parse_rule(text: str) -> dict[str, int]:
    """The rule that `text` says; what it leaves out has its default. Raises UsageError naming the accepted form."""
    rule = dict(_KEYS.values())
    for part in text.split(","):
        word, _, value = (piece.strip() for piece in part.partition("="))
        word = _OTHER_WORDS.get(word, word)
        amount = _amount(word, value)
        if word not in _KEYS or amount is None:
            raise UsageError(f"--rules {text!r}: {part.strip()!r} is no threshold: {_FORM}")
        rule[_KEYS[word][0]] = amount
    if not 1 <= rule["active_util_pct"] <= 100:
        raise UsageError(f"--rules {text!r}: active is a percentage from 1 to 100")
    return rule


def _amount(word: str, value: str) -> int | None:
    """The number that was typed; seconds of a duration where it is one; None: neither."""
    if value.isascii() and value.isdecimal() and int(value) <= _MOST:
        return int(value)
    try:
        return parse_duration_ms(value) // MS_PER_SECOND if word == _LONG else None
    except UsageError:
        return None


def rule_argument(rule: Rule) -> str:
    """The rule as `--rules` takes it."""
    return ",".join(f"{word}={rule[key]}{'s' if word == _LONG else ''}" for word, (key, _) in _KEYS.items())


@dataclass(frozen=True)
class FleetRules:
    """By what the whole fleet is judged, so that each sum means one thing.

    rule: for every card but those of `models`; None where no card is judged so. models: card models that have a rule
    of their own, by name.
    """

    rule: Rule | None = None
    models: Mapping[str, Rule] = field(default_factory=dict)

    def judged(self, document: Document) -> bool:
        """Whether these rules judged every state in the document. A host without any history judged nothing."""
        by_default = all(_same(rule, self.rule) for rule in default_rules(document))
        return by_default and all(self._judged_card(card) for card in document["cards"])

    def _judged_card(self, card: Mapping[str, Any]) -> bool:
        own = card.get("own_rule")
        return card["name"] not in self.models if own is None else _same(own, self.models.get(card["name"], self.rule))


def fleet_rules(results: Iterable[HostResult], asked: Rule | None = None) -> FleetRules:
    """The rule asked for, else the one that most hosts judge by; and the models' own where all hosts agree on them.

    A model's own rule counts where every host that has such a card judges it by that rule, and its other cards by
    the fleet's. Where one does not, no model's does: the hosts can be asked again by one rule, not by several.
    """
    documents = [result.report for result in results if result.report is not None]
    if asked is not None:
        return FleetRules(asked)
    rules = FleetRules(_common(map(default_rules, documents)), _own_rules(documents))
    concerned = (one for one in documents if any(card["name"] in rules.models for card in one["cards"]))
    if all(map(rules.judged, concerned)):
        return rules
    return FleetRules(rules.rule or _common(document["rules"] for document in documents))


def other_rules(results: Iterable[HostResult], rules: FleetRules) -> list[HostResult]:
    """The hosts that reported by other rules than the fleet's."""
    return [result for result in results if result.report is not None and not rules.judged(result.report)]


def default_rules(document: Document) -> list[Rule]:
    """The rules of the document but for those that are only a card model's own. Older agents do not tell them apart."""
    own = {rule_argument(card["own_rule"]) for card in document["cards"] if card.get("own_rule")}
    return [rule for rule in document["rules"] if rule_argument(rule) not in own]


def _common(named: Iterable[Iterable[Rule]]) -> Rule | None:
    """The rule of most hosts, each host counted for every one that it names; None where none names any.

    Of several that are as common it is the one whose text sorts first, so the order of the hosts does not matter.
    """
    counts: Counter[str] = Counter()
    rules: dict[str, Rule] = {}
    for of_host in named:
        by_text = {rule_argument(rule): rule for rule in of_host}
        counts.update(by_text.keys())
        rules |= by_text
    return rules[min(counts, key=lambda text: (-counts[text], text))] if counts else None


def _own_rules(documents: Iterable[Document]) -> dict[str, Rule]:
    """For each model that any host has a rule for, the first such rule."""
    cards = (card for document in documents for card in document["cards"] if card.get("own_rule"))
    return {card["name"]: card["own_rule"] for card in cards}


def _same(one: Rule, other: Rule | None) -> bool:
    return other is not None and rule_argument(one) == rule_argument(other)
