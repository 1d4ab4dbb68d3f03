"""One meaning for all sums: which rule the fleet is judged by, and which hosts judged by another. Pure.

The text form is the one that `--rules` takes, here and on the hosts:
`active=10,held=100,unattributed=500,unattributed_v1=1500,long=30m` (percent, MiB, MiB, MiB, a duration).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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


def common_rule(results: Iterable[HostResult]) -> Rule | None:
    """The rule that most hosts ran, each host counted for every rule it names; None where no host names any.

    Of several that are as common it is the one whose text sorts first, so the order of the hosts does not matter.
    """
    counts: Counter[str] = Counter()
    rules: dict[str, Rule] = {}
    for result in results:
        named = {rule_argument(rule): rule for rule in _rules(result.document)}
        counts.update(named.keys())
        rules |= named
    return rules[min(counts, key=lambda text: (-counts[text], text))] if counts else None


def differs(document: Document, rule: Rule | None) -> bool:
    """Whether states in the document were judged by anything but `rule`. A host without any history judged nothing."""
    return rule is not None and any(rule_argument(one) != rule_argument(rule) for one in _rules(document))


def other_rules(results: Iterable[HostResult], rule: Rule | None) -> list[HostResult]:
    """The hosts that answered by other rules than `rule`."""
    return [result for result in results if result.document is not None and differs(result.document, rule)]


def _rules(document: Document | None) -> Sequence[Rule]:
    return document["rules"] if document else ()
