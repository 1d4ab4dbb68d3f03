"""The metrics of a host: what its database holds, and what its daemon does."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

from gua.clock import Clock
from gua.cloud.config import config_path
from gua.daemon.status import read_status
from gua.metrics.read import metrics_text


def read_metrics(
    database: Path, clock: Clock, *, scheduler: Optional[str], per_user: bool, enrolment: Optional[Path] = None
) -> str:
    """Everything in text format. enrolment: its file, None: where it usually is.

    Raises DatabaseMissing, DatabaseUnusable.
    """
    status = read_status(
        database,
        clock,
        gpu_less=False,
        scheduler=scheduler,
        enrolment=config_path(enrolment, database),
        with_day=False,
    )
    return metrics_text(database, clock, status, scheduler=scheduler, per_user=per_user)
