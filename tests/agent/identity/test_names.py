import os
import pwd
import threading
import time
from typing import Optional

import pytest

from gua.clock import SystemClock
from gua.identity.names import CachedLookup, look_up_name, look_up_uid
from tests.agent.fakes import FakeClock

# Much longer than a busy machine needs to run a thread.
PATIENCE_S = 60.0


def wait_for(condition: threading.Event) -> None:
    assert condition.wait(PATIENCE_S)


def test_real_names_both_ways() -> None:
    assert look_up_name(0) == pwd.getpwuid(0).pw_name
    assert look_up_uid(pwd.getpwuid(0).pw_name) == 0
    assert look_up_name(3_999_999_999) is None
    assert look_up_uid("no such account here") is None
    assert look_up_uid("nul\0name") is None


def test_answers_and_misses_are_asked_for_once() -> None:
    asked = []

    def look_up(uid: int) -> Optional[str]:
        asked.append(uid)
        return "alice" if uid == 1001 else None

    names = CachedLookup(FakeClock(), look_up, wait_s=PATIENCE_S)
    assert [names.get(1001), names.get(1001), names.get(7), names.get(7)] == ["alice", "alice", None, None]
    assert asked == [1001, 7]


def test_neither_answers_nor_questions_pile_up() -> None:
    quick = CachedLookup(FakeClock(), str, wait_s=PATIENCE_S)
    assert [quick.get(number) for number in range(5_000)] == list(map(str, range(5_000)))
    assert len(quick._answers) <= 4096
    open_again = threading.Event()
    hanging = CachedLookup(FakeClock(), lambda number: str(number) if open_again.wait(60) else None, wait_s=0.0)
    assert not any(hanging.get(number) for number in range(5_000))
    assert len(hanging._pending) <= 4096
    open_again.set()


def test_a_miss_expires_sooner_than_a_name() -> None:
    clock, asked = FakeClock(), []

    def look_up(uid: int) -> Optional[str]:
        asked.append(uid)
        return "alice" if uid == 1001 else None

    names = CachedLookup(clock, look_up, wait_s=PATIENCE_S)
    for uid in (1001, 7):
        names.get(uid)
    clock.sleep_s(600)
    for uid in (1001, 7):
        names.get(uid)
    assert asked == [1001, 7, 7]


def test_a_hung_directory_costs_one_short_wait_and_answers_later_count() -> None:
    release, served = threading.Event(), threading.Event()

    def look_up(uid: int) -> Optional[str]:
        wait_for(release)
        if uid == 5:
            served.set()
        return f"user{uid}"

    names = CachedLookup(SystemClock(), look_up, wait_s=0.05)
    begin = time.monotonic()
    assert [names.get(uid) for uid in range(6)] == [None] * 6
    assert time.monotonic() - begin < 120
    release.set()
    wait_for(served)
    deadline = time.monotonic() + 60
    while names.get(5) is None:
        assert time.monotonic() < deadline
    assert [names.get(uid) for uid in range(6)] == [f"user{uid}" for uid in range(6)]


def test_an_expired_name_is_used_while_the_directory_hangs() -> None:
    clock, hang, release = FakeClock(), threading.Event(), threading.Event()

    def look_up(uid: int) -> Optional[str]:
        if hang.is_set():
            wait_for(release)
        return "alice"

    names = CachedLookup(clock, look_up, wait_s=0.05)
    deadline = time.monotonic() + PATIENCE_S
    while names.get(1) is None:
        assert time.monotonic() < deadline
    hang.set()
    clock.sleep_s(4000)
    assert names.get(1) == "alice"
    release.set()


@pytest.mark.skipif(os.geteuid() != 0, reason="root reads its own name")
def test_root_is_root() -> None:
    assert CachedLookup(SystemClock(), look_up_name, wait_s=10).get(0) == pwd.getpwuid(0).pw_name
