"""How old what a report shows is. Pure."""

from __future__ import annotations

from typing import Optional

from gua.report.document import Report
from gua.units import MS_PER_SECOND, format_duration, parse_time_ms, to_iso

# Data older than this many intervals no longer says what is going on.
FRESH_INTERVALS = 3


def newest_tick(report: Report) -> Optional[str]:
    """Time of the newest tick that saw any card; None when there is none."""
    times = [card["now"]["at"] for card in report["cards"] if card["now"] is not None]
    return max(times, key=parse_time_ms, default=None)


def stale_text(report: Report) -> Optional[str]:
    """One sentence when the newest tick is older than three intervals at the end of the window, else None."""
    newest = newest_tick(report)
    if newest is None:
        return None
    end_ms = min(parse_time_ms(report["window"]["until"]), parse_time_ms(report["generated_at"]))
    age_ms = end_ms - parse_time_ms(newest)
    interval_s = max(report["intervals_s"], default=0.0)
    if age_ms <= FRESH_INTERVALS * interval_s * MS_PER_SECOND:
        return None
    return (
        f"the newest tick is {format_duration(age_ms)} old ({to_iso(parse_time_ms(newest))}), "
        f"more than three intervals of {interval_s:g} s: is the daemon running?"
    )
