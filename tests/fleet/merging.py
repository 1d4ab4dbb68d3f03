"""Hosts as a sweep leaves them, and what the fleet's report makes of them."""

from __future__ import annotations

from typing import Any

from gua_fleet.merge import Known, merge_reports
from gua_fleet.model import Document, Host, HostResult, Outcome
from tests.documents import NOW_MS, RULE, SINCE_MS, UNTIL_MS

STRICT = RULE | {"active_util_pct": 50}


def answer(name: str, document: Document, **fields: Any) -> HostResult:
    return HostResult(Host(name, name, **fields), Outcome.OK, document=document)


def silent(name: str, outcome: Outcome = Outcome.UNREACHABLE, **fields: Any) -> HostResult:
    return HostResult(Host(name, name, **fields), outcome, detail="no route to host")


def merge(*results: HostResult, **known: Any) -> Document:
    return merge_reports(
        results, since_ms=SINCE_MS, until_ms=UNTIL_MS, tz="Etc/UTC", generated_at_ms=NOW_MS, known=Known(**known)
    )
