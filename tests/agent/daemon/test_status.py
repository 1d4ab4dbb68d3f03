"""What the daemon is said to do, from what its lock and its last tick say."""

import os
from pathlib import Path
from typing import Any, Optional

import pytest

from gua.daemon.presence import Found, Presence
from gua.daemon.record import own_record
from gua.daemon.status import RUNNING, SCHEMA, History, judge, read_status, sentence
from gua.errors import DatabaseUnusable
from gua.model import TickStatus
from gua.store.reader import TickRow
from tests.agent.fakes import FakeClock

NOW_MS = 1_800_000_000_000
HERE = Found(Presence.HERE, own_record(Path("/x/gua.db"), {}))
HOUR_MS = 3_600_000


def history(age_s: Optional[float], **more: Any) -> History:
    last = None if age_s is None else TickRow(NOW_MS - round(age_s * 1000), TickStatus.OK, 30_000)
    return History(last=last, **{"cards": ("GPU-a", "GPU-b"), **more})


def state(found: Found, past: History, age_ms: Optional[int] = HOUR_MS, *, gpu_less: bool = False) -> str:
    return judge(found, past, now_ms=NOW_MS, age_ms=age_ms, gpu_less=gpu_less)


@pytest.mark.parametrize(("age_s", "word"), [(12, "running"), (89, "running"), (91, "stuck"), (-3600, "stuck")])
def test_a_daemon_runs_when_its_last_tick_is_no_older_than_three_intervals(age_s: float, word: str) -> None:
    assert state(HERE, history(age_s)) == word
    assert state(Found(Presence.UNNAMED), history(age_s), None) == word


def test_whoever_has_no_lock_does_not_run_however_fresh_the_tick() -> None:
    assert state(Found(Presence.NONE), history(1)) == "stopped"
    assert state(Found(Presence.ELSEWHERE), history(1)) == "elsewhere"
    assert not {"stopped", "elsewhere", "stuck", "unknown"} & RUNNING


def test_where_the_lock_may_not_be_seen_the_tick_decides() -> None:
    assert state(Found(Presence.HIDDEN), history(1)) == "running"
    assert state(Found(Presence.HIDDEN), history(900)) == "unknown"


def test_a_daemon_that_just_began_is_given_time_for_its_first_tick() -> None:
    assert state(HERE, history(None, cards=()), 1_000) == "starting"
    assert state(HERE, history(7200), 1_000) == "starting"
    assert state(HERE, history(None, cards=()), 59_000) == "starting"
    assert state(HERE, history(None, cards=()), HOUR_MS) == "stuck"


def test_a_pause_and_a_host_without_a_card_are_no_trouble() -> None:
    assert state(HERE, history(900, paused=True)) == "paused"
    assert state(HERE, history(None, cards=()), gpu_less=True) == "waiting"
    assert state(HERE, history(900), gpu_less=True) == "stuck"  # it had cards: their absence is to be told


def test_a_database_that_cannot_be_read_is_no_verdict() -> None:
    assert state(HERE, History(error=DatabaseUnusable("newer"))) == "unknown"
    assert state(HERE, History(error=DatabaseUnusable("newer")), 1_000) == "starting"


def told(**more: Any) -> str:
    document = {
        "state": "running",
        "pid": 4711,
        "unit": None,
        "held_by": "gpu07",
        "interval_s": 30.0,
        "cards": 8,
        "last_tick_age_s": 12.0,
        "last_tick_status": "ok",
        "error": None,
        "card_states": {"active": 8},
        "unknown_by_reason": {},
        "driver_mismatch": None,
    }
    return sentence({**document, **more})


def test_the_sentence() -> None:
    assert told() == "running (pid 4711), last tick 12 s ago, 8 cards ok"
    lost = {"card_states": {"active": 7, "unknown": 1}, "unknown_by_reason": {"card_lost": 1}}
    cards = "8 cards: 7 ok, 1 unknown (1: the card did not answer)"
    assert told(**lost, last_tick_status="partial") == f"running (pid 4711), last tick partial 12 s ago, {cards}"
    assert told(state="stuck", last_tick_age_s=720.0) == (
        "stuck (pid 4711): last tick 12 min ago, and one is due every 30 s; look into its log"
    )
    assert told(state="stuck", last_tick_age_s=-720.0).startswith("stuck (pid 4711): last tick 12 min ahead of the")
    assert told(state="stopped", pid=None) == "not running, last tick 12 s ago"
    assert told(state="stopped", pid=None, last_tick_age_s=None) == "not running"
    assert told(unit="gua-agent.service").startswith("running (pid 4711, gua-agent.service), ")
    assert told(state="elsewhere").startswith("not running here: the daemon of host gpu07 has this database")
    assert told(state="unknown", error="newer").endswith(": newer")


def test_the_sentence_tells_of_a_driver_that_no_new_program_can_use() -> None:
    mismatch = {"kernel_module": "570.86.15", "library": "580.65.06"}
    assert told(driver_mismatch=mismatch) == (
        "running (pid 4711), last tick 12 s ago, 8 cards ok; kernel module 570.86.15, library 580.65.06: it samples on "
        "with the library loaded before, but will not after its next start, and no new job can use the cards"
    )
    assert told(driver_mismatch=mismatch, last_tick_status="error").endswith(
        "; kernel module 570.86.15, library 580.65.06"
    )


def read_nothing(folder: Path) -> dict[str, Any]:
    """The document of a folder in which nothing lies."""
    enrolment = folder / "cloud.json"
    return read_status(
        folder / "gua.db", FakeClock(), gpu_less=True, scheduler=None, enrolment=enrolment, with_day=True
    )


def test_a_host_with_nothing_at_all_has_a_whole_document(tmp_path: Path) -> None:
    document = read_nothing(tmp_path)
    assert (document["schema"], document["running"], document["state"]) == (SCHEMA, False, "stopped")
    assert (document["pid"], document["last_tick_at"], document["cards"]) == (None, None, 0)
    assert os.listdir(tmp_path) == []


def test_the_schema_names_exactly_what_the_document_has(tmp_path: Path) -> None:
    from jsonschema import Draft202012Validator

    from gua.schemas import load_schema

    schema = load_schema("gua.status.1")
    document = read_nothing(tmp_path)
    Draft202012Validator(schema).validate(document)
    assert list(document) == list(schema["properties"])
    assert set(document) - set(schema["required"]) == {"board", "driver_mismatch"}  # which older agents do not tell
    assert (document["enrolled"], document["board"]) == (False, None)
    assert set(schema["properties"]["state"]["enum"]) >= RUNNING
