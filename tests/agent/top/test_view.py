"""What `gua top` shows, from the database and from samples of its own; no terminal is needed for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gua.demo.cluster import FakeSource
from gua.model import GpuProcess, Holder, KnownDevice, ProcessType, Reason, State, Tick, TickStatus
from gua.top.frame import Shown, cropped, frame, plain_text
from gua.top.sources import SampleSource, StoreSource
from gua.top.view import STEPS, UNSEEN, TopCard, TopView, history_of, in_order, next_sort
from tests.agent.fakes import FakeClock
from tests.agent.store.opened import SetClock, stored
from tests.agent.store.ticks import MINUTE, MONDAY, card, holder, tick


def top_card(index: int, state: State = State.ACTIVE, **fields: object) -> TopCard:
    base = {
        "uuid": f"GPU-{index}",
        "index": index,
        "name": "NVIDIA A100",
        "at_ms": MONDAY,
        "state": state,
        "reason": None,
        "since_ms": None,
        "util_pct": 50,
        "memory_used_mb": 1_024,
        "memory_total_mb": 81_920,
        "power_w": 100.0,
        "holders": (),
        "history": (UNSEEN, None, 0, 50, 100),
    }
    return TopCard(**{**base, **fields})  # type: ignore[arg-type]


def view(*cards: TopCard, now_ms: int = MONDAY + 1_000, **fields: object) -> TopView:
    return TopView(hostname="box", source="database", now_ms=now_ms, stale_ms=90_000, cards=cards, **fields)  # type: ignore[arg-type]


def text(one: TopView, width: int = 100, **how: object) -> str:
    return plain_text(frame(one, Shown(**how), width))  # type: ignore[arg-type]


def stored_view(path: Path, now_ms: int) -> TopView:
    return StoreSource(path, SetClock(now_ms), None).read()


def test_the_database_tells_cards_holders_and_the_last_minutes(tmp_path: Path) -> None:
    ada = holder("ada", 100)
    ticks = [
        tick(MONDAY + n * MINUTE, card("GPU-a", n, (ada,)), card("GPU-b", index=1), cover_ms=MINUTE) for n in range(9)
    ]
    found = stored_view(stored(tmp_path / "gua.db", ticks, interval_ms=MINUTE), MONDAY + 9 * MINUTE)
    first, second = found.cards
    assert (first.state, first.util_pct, first.power_w) == (State.IDLE_HELD, 8, 100.0)
    assert first.history[-10:] == (UNSEEN, 0, 1, 2, 3, 4, 5, 6, 7, 8)
    assert [(one.user, one.pid, one.memory_mb, one.since_ms) for one in first.holders] == [("ada", 100, 4_000, MONDAY)]
    assert [one.uuid for one in found.free] == [second.uuid] == ["GPU-b"]
    assert "Free: 1 (A100)" in text(found)


def test_old_samples_are_stale_and_call_no_card_free(tmp_path: Path) -> None:
    path = stored(tmp_path / "gua.db", [tick(MONDAY, card("GPU-a"))])
    found = stored_view(path, MONDAY + 10 * MINUTE)
    assert found.free == []
    assert "Free: none" in text(found)
    assert "STALE: every sample 10 min old" in text(found)
    assert "stale" in text(found).splitlines()[-1]


def test_a_database_that_goes_away_leaves_the_last_view_with_the_reason(tmp_path: Path) -> None:
    path, clock = stored(tmp_path / "gua.db", [tick(MONDAY, card("GPU-a"))]), SetClock(MONDAY)
    source = StoreSource(path, clock, None)
    assert source.read().notes == ()
    path.rename(tmp_path / "elsewhere.db")
    clock.ms += 10 * MINUTE
    found = source.read()
    assert "no database" in found.notes[0]
    assert (len(found.cards), found.free) == (1, [])


class OneTick:
    """Gives the same cards at any time."""

    def __init__(self, *cards: object, status: TickStatus = TickStatus.OK) -> None:
        self._cards = cards
        self._status = status

    def collect(self, *, ts_ms: int, cover_ms: int, known: tuple[KnownDevice, ...]) -> Tick:
        return tick(ts_ms, *self._cards, status=self._status)  # type: ignore[arg-type]

    def close(self) -> bool:
        return True


def test_own_samples_tell_since_when_only_where_the_begin_was_seen() -> None:
    clock, source = FakeClock(MONDAY), OneTick(card("GPU-a", 5, (holder("ada", 100),)))
    sampled = SampleSource(source, clock, interval_ms=1_000)
    assert sampled.read().cards[0].holders[0].since_ms is None
    source._cards = (card("GPU-a", 5, (holder("ada", 100), holder("ben", 200))),)
    clock.sleep_s(1)
    assert [one.since_ms for one in sampled.read().cards[0].holders] == [None, MONDAY + 1_000]


def test_a_lost_card_is_unknown_with_its_reason_and_never_free() -> None:
    sampled = SampleSource(OneTick(card("GPU-a", absent=Reason.CARD_LOST)), FakeClock(MONDAY), interval_ms=1_000)
    found = sampled.read()
    assert found.free == []
    shown = text(found)
    assert "unknown" in shown
    assert "the card did not answer" in shown
    assert "  0 %" not in shown
    assert found.cards[0].history == (UNSEEN,) * (STEPS - 1) + (None,)


def test_a_made_up_host_has_a_past(tmp_path: Path) -> None:
    sampled = SampleSource(FakeSource(), FakeClock(MONDAY), interval_ms=30_000, name="demo")
    sampled.fill(STEPS)
    assert all(UNSEEN not in one.history for one in sampled.read().cards)


def test_a_scheduler_keeps_its_idle_cards_from_being_called_free() -> None:
    idle = view(top_card(0, State.TRULY_IDLE), scheduler="slurm")
    assert "Idle, given out by slurm: 0 (A100)" in text(idle)
    assert "Free" not in text(idle)


@pytest.mark.parametrize(
    ("sort", "order"),
    [("index", [0, 1, 2, 3]), ("state", [1, 3, 0, 2]), ("memory", [2, 1, 0, 3]), ("utilisation", [1, 0, 3, 2])],
)
def test_cards_are_sorted_with_what_is_not_known_last(sort: str, order: list[int]) -> None:
    cards = [
        top_card(0, State.IDLE_HELD, util_pct=5, memory_used_mb=10),
        top_card(1, State.ACTIVE, util_pct=90, memory_used_mb=20),
        top_card(2, State.UNKNOWN, util_pct=None, memory_used_mb=30),
        top_card(3, State.ACTIVE, util_pct=0, memory_used_mb=None),
    ]
    assert [one.index for one in in_order(cards, sort)] == order
    assert next_sort("utilisation") == "index"


def test_history_takes_the_highest_of_a_step_and_keeps_unknown_from_zero() -> None:
    steps = history_of([(0, 10), (1, 80), (15, None), (25, 0), (-900, 3)], now_ms=29, step_ms=10)
    assert steps[-4:] == (10, 80, None, 0)
    assert set(steps[:-4]) == {UNSEEN}
    assert history_of([(0, 10), (1, 30)], now_ms=30, step_ms=10)[-4:] == (30, UNSEEN, UNSEEN, UNSEEN)


def test_marks_differ_for_nothing_seen_nothing_known_and_zero() -> None:
    line = text(view(top_card(0)), unicode=False).splitlines()[2]
    assert " ?_=#" in line
    assert line.isascii()


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_window(width: int) -> None:
    name = "\x1b[31m" + "x" * 90
    drawer = Holder(GpuProcess(7, ProcessType.GRAPHICS, None), holder(name, 7, name=name).identity)
    sampled = SampleSource(
        OneTick(card("GPU-a", 5, (holder(name, 9, name=name), drawer))), FakeClock(MONDAY), interval_ms=1
    )
    lines = text(sampled.read(), width).splitlines()
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)


def test_what_does_not_fit_is_counted() -> None:
    lines = frame(view(*(top_card(n) for n in range(9))), Shown(), 80)
    assert len(cropped(lines, 5)) == 5
    assert plain_text(cropped(lines, 5)).splitlines()[-1] == f"... {len(lines) - 4} more lines"
    assert cropped(lines, 99) == lines
