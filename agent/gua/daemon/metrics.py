"""The metrics of a host: what its database holds, and what its daemon does."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

from gua.clock import Clock
from gua.daemon.status import read_status
from gua.metrics.read import metrics_text


def read_metrics(database: Path, clock: Clock, *, scheduler: Optional[str], per_user: bool) -> str:
    """Everything in text format. Raises DatabaseMissing, DatabaseUnusable."""
    status = read_status(database, clock, gpu_less=False, scheduler=scheduler, enrolled=None, with_day=False)
    return metrics_text(database, clock, status, scheduler=scheduler, per_user=per_user)
