"""Any history: roll-ups and raw ticks give the same figures, also when raw ticks are gone, and under another rule."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gua.errors import UsageError
from gua.model import Reason, State
from gua.report.document import Report
from gua.store import rejudge, retention, sums
from gua.store.codes import STATES, VERDICTS
from gua.store.database import open_reader
from gua.store.session import Session
from gua.store.sums import WindowSums
from gua.units import parse_time_ms
from tests.agent.store.histories import MANY, RULE, UUIDS, History, histories, with_window
from tests.agent.store.opened import report, stored
from tests.agent.store.oracle import Figures, figures, hold_lives
from tests.agent.store.ticks import HOUR, MINUTE, MONDAY, card, holder, tick

OTHER = replace(RULE, active_util_pct=50, held_mb=500, unattributed_mb=200, long_idle_s=120)


@contextlib.contextmanager
def database() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "gua.db"


def far(history: History, until_s: int) -> int:
    """A `now` after everything, so that no window is cut."""
    return max(history.end_ms, until_s * 1000 + HOUR)


def compare(found: Report, right: Figures) -> None:
    for one in found["cards"]:
        uuid = one["uuid"]
        observed_s = sum(amount for (of, _), amount in right.card_s.items() if of == uuid)
        assert one["card_s"] == {state: right.card_s[uuid, state] for state in one["card_s"]}
        assert one["samples"] == right.samples[uuid]
        assert one["expected_card_s"] == max(right.expected_s[uuid], observed_s)
    assert found["coverage"]["unknown_by_reason"] == {name: amount for name, amount in right.reasons.items() if amount}
    assert {name: ticks for name, ticks in found["coverage"]["ticks"].items() if ticks} == dict(right.ticks)
    hours = {
        (one["weekday"], one["hour"], state): s for one in found["hours_of_week"] for state, s in one["card_s"].items()
    }
    assert {key: s for key, s in hours.items() if s} == {key: s for key, s in right.hours.items() if s}
    for user in found["users"]:
        name = user["user"]
        assert user["states"] == {state: right.user_card_s[name, state] for state in user["states"]}
        assert user["shared_card_s"] == right.user_shared_s[name]
        assert user["idle_held_long_card_s"] == right.user_long_s[name]
        assert user["samples"] == right.user_samples[name]
        assert abs(user["share_s"] - right.user_share_s[name]) <= 0.2
    charged = {name for (name, _), amount in right.user_card_s.items() if amount}
    assert charged <= {user["user"] for user in found["users"]}


LOST = card("GPU-b", absent=Reason.CARD_LOST)
# Met, retired, and then listed without an answer by a clock that was set back: no longer expected, from no time on.
RETIRED_THEN_EARLIER = History(
    [tick(MONDAY + HOUR, LOST, cover_ms=MINUTE), tick(MONDAY + HOUR - 3 * MINUTE, LOST, cover_ms=MINUTE)],
    {"GPU-b": {1: MONDAY + HOUR + MINUTE}},
)


@settings(max_examples=40 * MANY, deadline=None)
@example((RETIRED_THEN_EARLIER, MONDAY // 1000, MONDAY // 1000 + 7_200))
@given(with_window())
def test_every_figure_is_what_the_ticks_say(case: tuple[History, int, int]) -> None:
    history, since_s, until_s = case
    with database() as path:
        history.write(path)
        found = report(path, since_s * 1000, until_s * 1000, now_ms=far(history, until_s))
        everything = report(path, 0, far(history, until_s))
    compare(found, figures(history.ticks, since_s, until_s, RULE.long_idle_s, history.breaks))
    holds = Counter(
        (
            one["card"],
            (one["pid"], one["user"]),
            tuple(sorted((state, s) for state, s in one["states"].items() if s)),
            one["idle_held_long_card_s"],
            one["until"] is None,
        )
        for one in everything["holds"]
    )
    assert holds == Counter(
        (one["card"], one["key"], tuple(sorted((k, s) for k, s in one["s"].items() if s)), one["long"], one["open"])
        for one in hold_lives(history.ticks, RULE.long_idle_s, history.breaks)
    )


def remove_raw(path: Path, cut_ms: int) -> None:
    """Remove all raw ticks before `cut_ms` that may go, a few at a time."""
    connection = sqlite3.connect(path)
    session = Session(connection)
    while ticks := retention.old_ticks(session, cut_ms):
        retention.remove_ticks(session, ticks)
    connection.commit()
    connection.close()


@pytest.fixture(scope="module", autouse=True)
def small_slices() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention, "SLICE_TICKS", 2)
        patch.setattr(rejudge, "CHUNK_TICKS", 5)
        patch.setattr(sums, "SORTED_SLOTS", 2)
        yield


@settings(max_examples=40 * MANY, deadline=None)
@given(with_window(), st.integers(-3_000, 3_000))
def test_figures_stay_right_when_raw_ticks_are_gone(case: tuple[History, int, int], cut_s: int) -> None:
    history, since_s, until_s = case
    with database() as path:
        history.write(path)
        remove_raw(path, (since_s + cut_s) * 1000)
        found = report(path, since_s * 1000, until_s * 1000, now_ms=far(history, until_s))
    # it says which window it widened to
    since_s, until_s = (parse_time_ms(found["window"][end]) // 1000 for end in ("since", "until"))  # type: ignore[literal-required]
    compare(found, figures(history.ticks, since_s, until_s, RULE.long_idle_s, history.breaks))


def by_name(path: Path, found: WindowSums) -> dict[str, Any]:
    """Sums with words for keys, what is zero left out."""
    with open_reader(path) as reader:
        users = {number: row.name for number, row in reader.users().items()}
        devices = {row.id: row.uuid for row in reader.devices()}
    return {
        "cards": {(devices[d], VERDICTS[v]): amounts for (d, v), amounts in found.cards.items() if any(amounts)},
        "users": {(users[u], STATES[s]): amounts for (u, s), amounts in found.users.items() if any(amounts)},
        "slots": {(slot, STATES[s]): ms for (slot, s), ms in found.slots.items() if ms},
    }


def judged_again(path: Path, since_ms: int, until_ms: int) -> dict[str, Any]:
    with open_reader(path) as reader:
        mine, other = (reader.rejudge((since_ms, until_ms), rule).sums for rule in (RULE, OTHER))
    return {"mine": by_name(path, mine), "other": by_name(path, other)}


def summed(path: Path, since_ms: int, until_ms: int) -> dict[str, Any]:
    with open_reader(path) as reader:
        return by_name(path, reader.sums((0, 0), [(since_ms, until_ms)]))


HELD = card("GPU-a", holders=(holder(),), rule=RULE)
# Two minutes apart the card is seen held; in between a clock set back gives a tick without it, or one of other times
# that covers nothing: its stretch goes on, whether such a tick lies within reach of the window or not.
BRIDGED = [
    tick(MONDAY + 260_000, HELD, cover_ms=60_000),
    tick(MONDAY - HOUR, cover_ms=60_000),
    tick(MONDAY - 2 * HOUR, HELD, cover_ms=0),
    tick(MONDAY + 350_000, HELD, cover_ms=200_000),
]
BROKEN = [BRIDGED[0], tick(MONDAY - HOUR, HELD, cover_ms=60_000), BRIDGED[3]]


@settings(max_examples=40 * MANY, deadline=None)
@example((History(BRIDGED), MONDAY // 1000 + 540, MONDAY // 1000 + 545))
@example((History(BROKEN), MONDAY // 1000 + 540, MONDAY // 1000 + 545))
@given(with_window(retirements=False))
def test_ticks_judged_again_are_as_if_they_had_been_judged_so(case: tuple[History, int, int]) -> None:
    history, since_s, until_s = case
    window = (since_s * 1000, until_s * 1000)
    with database() as path, database() as as_mine, database() as as_other:
        history.write(path)
        history.judged_by(RULE).write(as_mine)
        history.judged_by(OTHER).write(as_other, OTHER)
        found = judged_again(path, *window)
        assert found["mine"] == summed(as_mine, *window)
        assert found["other"] == summed(as_other, *window)


@settings(max_examples=20 * MANY, deadline=None)
@given(histories())
def test_slots_and_raw_ticks_sum_alike(history: History) -> None:
    with database() as path:
        history.write(path)
        with open_reader(path) as reader:
            raw = reader.sums((0, 0), [(0, history.end_ms)])
            slots = reader.sums((0, history.end_ms // 900_000 + 1), [])
        assert by_name(path, raw) == by_name(path, slots)
        assert raw.ticks == slots.ticks
        assert {uuid for (uuid, _) in by_name(path, raw)["cards"]} <= set(UUIDS)


def test_judging_again_refuses_what_is_gone_and_says_from_when_on_it_can(tmp_path: Path) -> None:
    held = card(holders=(holder("ada"),))
    path = stored(tmp_path / "gua.db", [tick(MONDAY + n * MINUTE, held, cover_ms=MINUTE) for n in range(60)])
    remove_raw(path, MONDAY + 20 * MINUTE)
    with open_reader(path) as reader:
        with pytest.raises(UsageError, match="before 2026-03-02T00:20:00Z are gone"):
            reader.rejudge((MONDAY, MONDAY + HOUR), RULE)
        sums = reader.rejudge((MONDAY + 20 * MINUTE, MONDAY + HOUR), RULE).sums
    assert sum(sums.slots.values()) == 40 * MINUTE
    assert {STATES[state] for _, state in sums.slots} == {State.IDLE_HELD}


def test_memory_that_nobody_listed_holds_has_a_name_though_no_stored_tick_needed_one(tmp_path: Path) -> None:
    # 300 MB is nobody's by the rule in force, and more than the other rule lets pass
    path = stored(tmp_path / "gua.db", [tick(MONDAY, card(used_mb=300), cover_ms=MINUTE)], rule=RULE)
    assert judged_again(path, MONDAY, MONDAY + HOUR)["other"]["users"] == {
        ("unattributed", State.IDLE_HELD): [MINUTE, MINUTE, 0, 0, 6_000_000, MINUTE, 1]
    }
