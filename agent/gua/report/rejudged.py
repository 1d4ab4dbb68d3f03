"""A report under another rule: the sums, the present and the holds alike, from raw ticks judged again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Optional

from gua.errors import UsageError
from gua.store.codes import STATES, VERDICTS
from gua.store.reader import HoldRow, NowRow
from gua.units import to_iso


def refuse_beyond_raw(since_ms: int, raw_since_ms: Optional[int], option: str) -> None:
    """Raise UsageError where the window begins before the oldest raw tick: what is gone cannot be judged again."""
    if raw_since_ms is not None and since_ms < raw_since_ms:
        raise UsageError(
            f"{option} judges raw ticks again, and those before {to_iso(raw_since_ms)} are gone: "
            f"write --since {to_iso(raw_since_ms)} or later"
        )


def hold_under(hold: HoldRow, sums: Sequence[int]) -> HoldRow:
    """The hold with its states under the rule, of that part of its life which lies in the window.

    sums: milliseconds in the order of codes.STATES, then the long idle-held ones.
    """
    return replace(hold, state_ms=dict(zip(STATES, sums)), long_idle_ms=sums[len(STATES)])


def now_under(now: NowRow, verdict: int, since_ms: int) -> NowRow:
    """The present under the rule. verdict: its code. since_ms: since when its state stands, as raw ticks tell."""
    return replace(now, verdict=VERDICTS[verdict], since_ms=since_ms)
