"""A report under another rule: raw ticks judged again for the sums, the present and the holds alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Optional

from gua.coverage import SLOT_MS, Span, clip, length_ms, pieces
from gua.errors import UsageError
from gua.model import ProcessType, Rule
from gua.store.codes import STATES
from gua.store.devices import DeviceRow
from gua.store.judge_again import JudgedTick, judge_again
from gua.store.reader import HoldRow, NowRow, StoreReader
from gua.store.steps import StepSums, step_slots
from gua.units import to_iso

# How far back the beginning of a present state is looked for at first; then twice that, and so on.
_LOOK_BACK_MS = 6 * 3_600_000


@dataclass(frozen=True)
class Replay:
    """holds: id -> milliseconds by state within the window, and long idle-held ones. steps: for the timeline."""

    holds: dict[int, tuple[list[int], int]]
    steps: StepSums


def refuse_beyond_raw(since_ms: int, raw_since_ms: Optional[int], option: str) -> None:
    """Raise UsageError where the window begins before the oldest raw tick: what is gone cannot be judged again."""
    if raw_since_ms is not None and since_ms < raw_since_ms:
        raise UsageError(
            f"{option} judges raw ticks again, and those before {to_iso(raw_since_ms)} are gone: "
            f"write --since {to_iso(raw_since_ms)} or later"
        )


def replay(reader: StoreReader, devices: Iterable[DeviceRow], window: Span, rule: Rule) -> Replay:
    """What each hold and each step of the timeline looks like under `rule`, within the window."""
    holds: defaultdict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([0] * len(STATES), [0]))
    first, end = window[0] // SLOT_MS, -(-window[1] // SLOT_MS)
    steps: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * len(STATES))
    step = step_slots(end - first)
    reach = (window[0] - rule.long_idle_s * 1000, window[1])
    for device in devices:
        for judged in judge_again(reader.card_ticks(device.id, reach), rule):
            spans = [clip(span, window) for span in judged.row.spans]
            state, covered_ms = STATES.index(judged.verdict.state), sum(map(length_ms, spans))
            for slot, start, stop in pieces(spans):
                steps[device.id, (slot - first) // step][state] += stop - start
            for hold in judged.row.holds:
                if hold.type is not ProcessType.GRAPHICS:
                    holds[hold.hold][0][state] += covered_ms
                    holds[hold.hold][1][0] += covered_ms if judged.long_idle else 0
    return Replay({hold: (ms, long[0]) for hold, (ms, long) in holds.items()}, StepSums(first, end, step, dict(steps)))


def hold_under(hold: HoldRow, found: Replay) -> HoldRow:
    """The hold with its states under the rule, of that part of its life which lies in the window."""
    state_ms, long_idle_ms = found.holds.get(hold.id, ([0] * len(STATES), 0))
    return replace(hold, state_ms=dict(zip(STATES, state_ms)), long_idle_ms=long_idle_ms)


def now_under(reader: StoreReader, device: int, now: NowRow, rule: Rule, begins_ms: int) -> NowRow:
    """The present under the rule, and since when its state stands, as far as raw ticks tell.

    begins_ms: no raw tick is older.
    """
    back_ms = _LOOK_BACK_MS
    while True:
        since_ms = max(begins_ms, now.at_ms - back_ms)
        rows = reader.card_ticks(device, (since_ms, now.at_ms + 1))
        judged = [one for one in judge_again(rows, rule) if one.row.at_ms <= now.at_ms]
        if not judged:
            return now
        first = _first_of_state(judged)
        if first > 0 or since_ms <= begins_ms:
            return replace(now, verdict=judged[-1].verdict, since_ms=judged[first].row.at_ms)
        back_ms *= 2


def _first_of_state(judged: list[JudgedTick]) -> int:
    """Where the last state begins: ticks follow each other with at most one interval between them."""
    place, state = len(judged) - 1, judged[-1].verdict.state
    while place > 0 and judged[place - 1].verdict.state is state and _goes_on(judged[place - 1], judged[place]):
        place -= 1
    return place


def _goes_on(before: JudgedTick, after: JudgedTick) -> bool:
    spans = before.row.spans
    end_ms = spans[-1][1] if spans else before.row.at_ms
    return after.row.at_ms - end_ms <= max(1, end_ms - before.row.at_ms)
