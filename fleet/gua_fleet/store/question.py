"""What is asked of the store: apart from what answers, so that asking costs nothing where nobody does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo


@dataclass(frozen=True)
class Question:
    """The report over [since_ms, until_ms), Unix UTC milliseconds, as every host is asked for it.

    now_ms: this machine's clock; no report reaches beyond it. zone, tz: of the hours of the week. holds: list who held
    what; a table shows none, since nobody knows whether they go on, and they are half of the work.
    """

    since_ms: int
    until_ms: int
    now_ms: int
    zone: tzinfo
    tz: str
    holds: bool = True
