"""The highest utilisation that a card showed in a window, and how much of it that is known of."""

from __future__ import annotations

from typing import Optional

from gua.coverage import Span
from gua.store.sample_id import DEVICE_BITS
from gua.store.session import Session


def highest_util(session: Session, device: int, window: Span) -> tuple[Optional[int], int]:
    """Percent, the maximum within intervals included, of raw ticks begun in the window; None without a reading.

    Second: the milliseconds that the ticks with a reading cover.
    """
    ((highest_pct, covered_ms),) = session.rows(
        "SELECT max(max(util_pct, coalesce(util_max_pct, 0))), coalesce(sum(cover_until - cover_from), 0)"
        f" FROM tick JOIN gpu_sample ON gpu_sample.id = (tick.id << {DEVICE_BITS} | ?)"
        " WHERE ts_ms >= ? AND ts_ms < ? AND util_pct IS NOT NULL",
        (device, *window),
    )
    return highest_pct, int(covered_ms)
