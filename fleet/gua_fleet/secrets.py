"""Passwords and passphrases, held where nothing prints them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Secret:
    """Something to be given to a host or a key, never to a reader: no repr, str or format shows it."""

    reveal: str = field(repr=False)

    def __str__(self) -> str:
        return "(secret)"


Ask = Callable[[str, str], Secret]
"""Asks a person: (prompt, what to do where nobody can be asked) -> what was typed. Raises CannotAsk."""
