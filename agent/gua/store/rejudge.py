"""Sums over a window as other rules would have made them: raw ticks judged again, all rules in one pass over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from gua.coverage import SLOT_MS, Span, clip, pieces
from gua.model import USER_UNATTRIBUTED, ProcessType, Rule, State
from gua.store.codes import VERDICT_CODE
from gua.store.credit import Credits, Sample
from gua.store.evidence_rows import CardTickRow, card_ticks
from gua.store.judge_again import JudgedTick, judge_again
from gua.store.raw import ticks_touching
from gua.store.session import Session
from gua.store.sums import WindowSums


def rejudge(session: Session, windows: Sequence[Span], rules: Sequence[Rule]) -> list[WindowSums]:
    """The sums of the windows, which do not overlap, under each of the rules. `rules` of the sums stay empty."""
    longest = int(session.rows("SELECT coalesce(max(longest_cover_ms), 0) FROM store")[0][0])
    users = {row[0]: int(row[1]) for row in session.rows("SELECT name, id FROM user")}
    sums = [WindowSums() for _ in rules]
    for window in windows:
        found = [Credits() for _ in rules]
        for (device,) in session.rows("SELECT id FROM device"):
            # A stretch that was long before the window began is long within it.
            reach = (window[0] - max(rule.long_idle_s for rule in rules) * 1000 - longest, window[1])
            rows = list(card_ticks(session, device, reach, longest))
            for credits, rule in zip(found, rules):
                for judged in judge_again(rows, rule):
                    _credit(credits, judged, device, window, users)
        inside = [tick for tick in ticks_touching(session, window, longest) if window[0] <= tick.ts_ms < window[1]]
        for total, credits in zip(sums, found):
            total.add_credits(credits)
            total.add_ticks(inside)
            total.rules.clear()
    return sums


def _credit(credits: Credits, judged: JudgedTick, device: int, window: Span, users: dict[str, int]) -> None:
    row = judged.row
    sample = Sample(
        device=device,
        rule=0,
        verdict=VERDICT_CODE[judged.verdict],
        users=_users(row, judged.verdict.state, users),
        power_dw=None if row.power_w is None else round(row.power_w * 10),
        long_idle=judged.long_idle,
    )
    counted: Optional[int] = row.at_ms // SLOT_MS if window[0] <= row.at_ms < window[1] else None
    credits.add(sample, tuple(pieces(clip(span, window) for span in row.spans)), counted)


def _users(row: CardTickRow, state: State, users: dict[str, int]) -> tuple[int, ...]:
    names = {hold.user for hold in row.holds if hold.type is not ProcessType.GRAPHICS}
    if not names and state is State.IDLE_HELD:
        names = {USER_UNATTRIBUTED}
    return tuple(sorted(users[name] for name in names if name in users))
