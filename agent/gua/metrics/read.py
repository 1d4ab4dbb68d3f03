"""The metrics of a database as they are now. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from gua.clock import Clock
from gua.metrics.build import build_metrics
from gua.metrics.text import to_text
from gua.report.build import build_report
from gua.report.period import named_period
from gua.report.zones import find_zone, local_zone_name
from gua.store.database import open_reader
from gua.store.reader import StoreReader


def metrics_text(
    database: Path, clock: Clock, status: Mapping[str, Any], *, scheduler: Optional[str], per_user: bool
) -> str:
    """Everything in text format. status: a `gua.status/1`. Raises DatabaseMissing, DatabaseUnusable."""
    now_ms, zone_name = clock.now_ms(), local_zone_name()
    zone = find_zone(zone_name)
    since_ms, _ = named_period("today", now_ms=now_ms, zone=zone)
    # In the first moment of a day there is no window yet
    since_ms = min(since_ms, now_ms - 1)
    with open_reader(database) as reader:
        report = build_report(
            reader,
            since_ms=since_ms,
            until_ms=now_ms,
            now_ms=now_ms,
            zone=zone,
            zone_name=zone_name,
            scheduler=scheduler,
        )
        warmth = _read_warmth(reader)
    return to_text(build_metrics(report, status, warmth, per_user=per_user))


def _read_warmth(reader: StoreReader) -> dict[str, tuple[Optional[float], Optional[int]]]:
    found = {}
    now = reader.now()
    for device in reader.devices():
        row = now.get(device.id)
        if row is not None:
            ticks = list(reader.card_ticks(device.id, (row.at_ms, row.at_ms + 1)))
            newest = next((tick for tick in reversed(ticks) if tick.at_ms == row.at_ms), None)
            found[device.uuid] = (newest.power_w, newest.temperature_c) if newest else (None, None)
    return found
