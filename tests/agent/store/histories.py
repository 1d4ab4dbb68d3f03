"""Random histories of two cards, and how they are written: for tests that hold for any of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from gua.classify import classify
from gua.model import DEFAULT_RULE, CardTick, ProcessType, Reason, Rule, Tick, TickStatus
from tests.agent.store.opened import writing
from tests.agent.store.ticks import HOUR, MONDAY, card, holder, tick

# A long hunt looks at so many times as many random histories: GUA_TEST_EXAMPLES=20 pytest --hypothesis-seed=7 ...
MANY = int(os.environ.get("GUA_TEST_EXAMPLES", "1"))
UUIDS = ("GPU-a", "GPU-b")
RULE = replace(DEFAULT_RULE, long_idle_s=240)
OF_ITS_OWN = replace(DEFAULT_RULE, active_util_pct=5, held_mb=4_000, long_idle_s=400)
DAY_S = 86_400


@dataclass
class History:
    """ticks: in the order they were stored. breaks: see oracle.Breaks. reopened: ticks before which the writer was
    closed and opened again. paused: ticks before which a pause began; it ends before the next.
    """

    ticks: list[Tick]
    breaks: dict[str, dict[int, int]] = field(default_factory=dict)
    reopened: list[int] = field(default_factory=list)
    paused: list[int] = field(default_factory=list)

    @property
    def end_ms(self) -> int:
        return max(one.ts_ms for one in self.ticks) + HOUR

    def write(self, path: Path, rule: Rule = RULE) -> Path:
        """Write it, every other life of the writer in one transaction where nothing else happened in it."""
        cuts = [0, *self.reopened, len(self.ticks)]
        for life, (start, end) in enumerate(zip(cuts, cuts[1:])):
            happened = {*self.paused, *(number for one in self.breaks.values() for number in one)}
            with writing(path, rule) as writer:
                if life % 2 and not happened & set(range(start, end)):
                    writer.write_ticks(self.ticks[start:end])
                    continue
                for number in range(start, end):
                    self._before(writer, number)
                    writer.write_tick(self.ticks[number])
        return path

    def _before(self, writer: Any, number: int) -> None:
        for uuid, at in self.breaks.items():
            if number in at:
                writer.retire_card(uuid, at[number])
        if number in self.paused:
            writer.begin_pause(self.ticks[number].ts_ms - 1_000)
            writer.end_pause(self.ticks[number].ts_ms)

    def judged_by(self, rule: Rule) -> History:
        """The same readings under another rule, of all cards."""
        ticks = [
            replace(one, cards=tuple(replace(c, verdict=classify(c.evidence, rule), rule=None) for c in one.cards))
            for one in self.ticks
        ]
        return replace(self, ticks=ticks)


_holders = st.lists(
    st.builds(
        lambda user, pid, kind, mb: holder(user, pid, type=kind, memory_mb=mb),
        st.sampled_from(["ada", "ben", "chi"]),
        st.integers(1, 3),
        st.sampled_from([ProcessType.COMPUTE, ProcessType.COMPUTE, ProcessType.GRAPHICS]),
        st.sampled_from([5, 450, 4_000, None]),
    ),
    max_size=3,
    unique_by=lambda one: one.process.pid,
).map(tuple)


@st.composite
def _card(draw: Any, uuid: str, rule: Rule) -> CardTick:
    if draw(st.integers(0, 9)) == 0:
        return card(uuid, absent=draw(st.sampled_from([Reason.CARD_LOST, Reason.DRIVER])))
    return card(
        uuid,
        draw(st.sampled_from([0, 0, 0, 0, 4, 9, 10, 80, None])),
        draw(_holders),
        used_mb=draw(st.sampled_from([None, None, 0, 300, 9_000])),
        lists_known=draw(st.integers(0, 7)) > 0,
        power_w=draw(st.sampled_from([61.0, 300.0, None])),
        rule=rule,
    )


@st.composite
def _ticks(draw: Any) -> list[Tick]:
    """Mostly steady ticks; now and then a gap, a jump of the clock, another interval, an extra sync-once.

    GPU-b may have a rule of its own, from some tick on.
    """
    second, interval, ticks = MONDAY // 1000 + draw(st.integers(0, 2_000)), 60, []
    count = draw(st.integers(1, 24))
    own_from = draw(st.sampled_from([0, count // 2, count, count]))
    repeated: dict[str, CardTick] = {}
    for number in range(count):
        jump = draw(st.sampled_from([0] * 8 + [25, 150, 1_900, -40, -300, -1_700, 30 * DAY_S, -30 * DAY_S]))
        interval = draw(st.sampled_from([interval] * 6 + [30, 90]))
        second += interval + jump
        for uuid in UUIDS:
            own = uuid == "GPU-b" and number >= own_from
            # Long stretches would hardly ever come up if every tick were drawn anew.
            if uuid not in repeated or number == own_from or draw(st.integers(0, 3)) == 0:
                one = draw(_card(uuid, OF_ITS_OWN if own else RULE))
                repeated[uuid] = replace(one, rule=OF_ITS_OWN if own else None)
        cards = [repeated[uuid] for uuid in UUIDS if draw(st.integers(0, 11)) > 0]
        cover_s = draw(st.sampled_from([interval] * 8 + [0]))
        status = draw(st.sampled_from(list(TickStatus)))
        ticks.append(tick(second * 1000, *cards, cover_ms=cover_s * 1000, status=status))
    return ticks


@st.composite
def histories(draw: Any, retirements: bool = True) -> History:
    ticks = draw(_ticks())
    numbers = st.lists(st.integers(0, len(ticks) - 1), max_size=2, unique=True).map(sorted)
    breaks = {uuid: {n: _whole(ticks, n) for n in draw(numbers)} for uuid in UUIDS} if retirements else {}
    return History(ticks, breaks, sorted(draw(st.lists(st.integers(0, len(ticks)), max_size=3))), draw(numbers))


def _whole(ticks: Sequence[Tick], number: int) -> int:
    """A whole second around that tick, at which a card is retired."""
    return ticks[number].ts_ms - 20_000


@st.composite
def with_window(draw: Any, **options: Any) -> tuple[History, int, int]:
    """A history, and a window (s) around some of it."""
    history = draw(histories(**options))
    middle = draw(st.sampled_from(history.ticks)).ts_ms // 1000
    return history, middle - draw(st.integers(0, 3_000)), middle + draw(st.integers(1, 3_000))
