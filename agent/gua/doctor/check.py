"""What one check of the doctor says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

OK, WARN, FAIL, SKIP = "ok", "warn", "fail", "skip"

# Worst first; a check that was left out tells least.
SEVERITY = (FAIL, WARN, OK, SKIP)


@dataclass(frozen=True)
class Check:
    """id: stable, a contract. status: one of SEVERITY. summary: one line. cure: what to do, None when nothing is.

    details: facts for programs.
    """

    id: str
    status: str
    summary: str
    cure: Optional[str] = None
    details: Mapping[str, Any] = field(default_factory=dict)
