"""What a reload changes of a running daemon, and what it must not."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from gua.config import load_settings
from gua.daemon.live import LiveSource, Outlets
from gua.daemon.orders import Orders
from gua.errors import NotEnrolled
from gua.model import TickStatus
from gua.rulebook import RuleBook
from tests.agent.fakes import FakeClock, ScriptedSource

SETTINGS = load_settings(environ={})


class Held(ScriptedSource):
    """A source whose sampling process the driver may hold."""

    def judge_by(self, rules: RuleBook) -> None:
        pass


def test_a_new_deadline_makes_no_second_sampling_process_while_the_driver_holds_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock()
    made: list[Held] = []

    def open_source(*_: object, **__: object) -> Held:
        made.append(Held(clock, itertools.repeat(TickStatus.OK)))
        return made[-1]

    monkeypatch.setattr("gua.daemon.live.open_source", open_source)
    live = LiveSource(SETTINGS, clock, fake=False)
    made[0].lets_go = False
    live.take(replace(SETTINGS, nvml_deadline_ms=5_000))
    for _ in range(3):
        live.collect(ts_ms=0, cover_ms=0, known=())
    assert (len(made), len(made[0].begun_s)) == (1, 3)
    made[0].lets_go = True
    for _ in range(3):
        live.collect(ts_ms=0, cover_ms=0, known=())
    assert [len(source.begun_s) for source in made] == [3, 3]


def test_a_board_stays_when_the_database_begins_anew_though_the_enrolment_is_gone(tmp_path: Path) -> None:
    from gua.cloud.config import CloudConfig
    from gua.cloud.token import Token

    enrolled = [
        CloudConfig("https://board.example.org", "host-1", "node-1", Token("gua_agent_0123456789"), "gua_agent")
    ]

    def load_cloud() -> CloudConfig:
        if not enrolled:
            raise NotEnrolled("run `gua enroll`")
        return enrolled[0]

    orders = Orders(tmp_path / "gua.db", tmp_path / "gua.pid", lambda: SETTINGS, load_cloud=load_cloud)
    outlets = Outlets(orders, FakeClock())
    try:
        first = outlets.open(SETTINGS)
        enrolled.clear()
        assert list(outlets.open(SETTINGS)) == list(first)
        assert len(first) == 1
    finally:
        outlets.close()


def test_what_ends_slowly_is_told_before_the_sampling_process_ends_and_is_given_no_time_beyond_its_own() -> None:
    class Slow:
        waits_s: ClassVar[list[float]] = []

        def offer(self, tick: object) -> None: ...

        def close(self, timeout_s: float) -> bool:
            self.waits_s.append(round(timeout_s, 3))
            return False

    clock = FakeClock()
    outlets = Outlets(Orders(Path("gua.db"), Path("gua.pid"), lambda: SETTINGS), clock)
    outlets._board = Slow()
    outlets.begin_to_end()
    clock.sleep_s(0.5)  # the sampling process took so long
    outlets.close()
    assert Slow.waits_s == [0.0, 0.2]
