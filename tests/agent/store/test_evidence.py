from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Optional

import pytest

from gua.classify import classify, evidence_of
from gua.model import (
    READING_GRAPHICS,
    CardReading,
    CardTick,
    Fault,
    FaultKind,
    GpuProcess,
    MemorySource,
    Mig,
    ProcessType,
    Reason,
)
from gua.store.evidence import unpack_evidence
from tests.agent.store.opened import steady, write

UNSIZED = GpuProcess(5, ProcessType.GRAPHICS, None)
COMPUTE = GpuProcess(6, ProcessType.COMPUTE, None)


def reading(**more: Any) -> CardReading:
    fields: dict[str, Any] = {"uuid": "GPU-a", "util_pct": 3, "memory_used_mb": 900, "processes": (), **more}
    return CardReading(**fields)


READINGS = [
    reading(),
    reading(util_pct=None),
    reading(processes=None),
    reading(processes=(COMPUTE,), memory_source=MemorySource.V2),
    reading(processes=(UNSIZED,), memory_source=MemorySource.V1),
    reading(memory_used_mb=None, memory_source=MemorySource.UNIFIED),
    reading(faults={READING_GRAPHICS: Fault("nvmlDeviceGetGraphicsRunningProcesses", "UNKNOWN", FaultKind.FAILED)}),
    reading(mig=Mig("GPU-p", "1g.10gb"), util_pct=None),
    *(CardReading("GPU-a", absent=reason) for reason in list(Reason)[3:]),
]


def stored_row(path: Path) -> tuple[Any, ...]:
    connection = sqlite3.connect(path)
    row: Optional[tuple[Any, ...]] = connection.execute(
        "SELECT verdict, flags, util_pct, holders, held_mb, unattributed_mb, mig_parent_uuid"
        " FROM gpu_sample JOIN device ON device.id = gpu_sample.id & 65535"
    ).fetchone()
    connection.close()
    assert row is not None
    return row


@pytest.mark.parametrize("one", READINGS, ids=range(len(READINGS)))
def test_stored_evidence_can_be_judged_again(tmp_path: Path, one: CardReading) -> None:
    evidence = evidence_of(one)
    path = write(tmp_path, steady(1, CardTick(one, evidence, classify(evidence))))

    verdict, flags, util_pct, holders, held_mb, unattributed_mb, parent = stored_row(path)

    assert evidence == unpack_evidence(
        verdict,
        flags,
        util_pct=util_pct,
        holders=holders,
        held_mb=held_mb,
        unattributed_mb=unattributed_mb,
        mig=parent is not None,
    )
