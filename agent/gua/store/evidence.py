"""Evidence as gpu_sample keeps it, and back, so that a stored card-tick can be judged under another rule. Pure."""

from __future__ import annotations

from typing import Optional

from gua.model import Evidence
from gua.store.codes import (
    FLAG_GRAPHICS_UNKNOWN,
    FLAG_HELD_UNKNOWN,
    FLAG_MEMORY_V1,
    FLAG_UNIFIED,
    VERDICTS,
)

# Reasons that say the card could not be reached, as codes of codes.VERDICTS.
_ABSENT = frozenset(
    code
    for code, verdict in enumerate(VERDICTS)
    if verdict.reason is not None and verdict.reason.value in ("card_lost", "card_missing", "driver", "unresponsive")
)


def pack_flags(evidence: Evidence) -> int:
    """The yes-or-no parts of evidence in one integer; `mig` is kept with the card and `absent` is in the verdict."""
    return (
        evidence.held_unknown * FLAG_HELD_UNKNOWN
        | evidence.graphics_unknown * FLAG_GRAPHICS_UNKNOWN
        | evidence.memory_v1 * FLAG_MEMORY_V1
        | evidence.unified * FLAG_UNIFIED
    )


def unpack_evidence(
    verdict: int,
    flags: int,
    *,
    util_pct: Optional[int],
    holders: Optional[int],
    held_mb: int,
    unattributed_mb: Optional[int],
    mig: bool,
) -> Evidence:
    """The evidence that was stored, from the columns of gpu_sample and whether the card is a MIG instance."""
    return Evidence(
        absent=VERDICTS[verdict].reason if verdict in _ABSENT else None,
        util_pct=util_pct,
        holders=holders,
        held_mb=held_mb,
        held_unknown=bool(flags & FLAG_HELD_UNKNOWN),
        unattributed_mb=unattributed_mb,
        graphics_unknown=bool(flags & FLAG_GRAPHICS_UNKNOWN),
        memory_v1=bool(flags & FLAG_MEMORY_V1),
        unified=bool(flags & FLAG_UNIFIED),
        mig=mig,
    )
