"""Which thresholds judge which card: the host's own, or those of its model where the settings name it. Pure."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Optional

from gua.model import DEFAULT_RULE, Rule


@dataclass(frozen=True)
class ModelRule:
    """The rule of every card whose name fits `match`, a shell pattern such as `*T4*`; case does not matter."""

    match: str
    rule: Rule

    def fits(self, name: str) -> bool:
        """Whether a card of this name (`Tesla T4`) is meant."""
        # lower() on both sides, for fnmatch itself would fold case on Windows only
        return fnmatch.fnmatchcase(name.lower(), self.match.lower())


@dataclass(frozen=True)
class RuleBook:
    """All rules in force. default: that of every card without one of its own. models: the first that fits counts."""

    default: Rule = DEFAULT_RULE
    models: tuple[ModelRule, ...] = ()

    def for_card(self, name: Optional[str]) -> Rule:
        """The rule of a card by its model's name; None, a card whose name nobody knows, has the default one."""
        return self.own_rule(name) or self.default

    def own_rule(self, name: Optional[str]) -> Optional[Rule]:
        """The rule of a card's model; None where the default one counts, also where it says the same."""
        if name is None:
            return None
        rule = next((entry.rule for entry in self.models if entry.fits(name)), None)
        return None if rule == self.default else rule
