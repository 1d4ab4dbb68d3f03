"""The pull of several hosts, whose agents run here: what becomes of each, whatever one of them does."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gua_fleet.ask import exit_status
from gua_fleet.errors import StoreUnusable
from gua_fleet.model import Outcome
from gua_fleet.pull import Pulled
from gua_fleet.store import session as session_module
from gua_fleet.store.database import open_store
from gua_fleet.store.histories import histories
from gua_fleet.store.place import Place
from gua_fleet.store.session import Session
from tests.agent.export.test_stream import history
from tests.fleet.pull.hosts import assert_kept, local, pulled, real_agent, script
from tests.fleet.ssh.cutter import Cutter
from tests.fleet.ssh.sshd import Keys, Sshd, find_sshd, host
from tests.fleet.store.killing import LEAST_REVS, kill_in_mid_pull
from tests.fleet.store.postgres import Postgres
from tests.fleet.store.pulling import NOW_MS, day_rows, present

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    find_sshd()
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def sshd(tmp_path: Path, keys: Keys) -> Iterator[Sshd]:
    with Sshd(tmp_path / "sshd", keys) as server:
        yield server


@pytest.fixture
def known(tmp_path: Path, sshd: Sshd) -> Path:
    path = tmp_path / "known_hosts"
    path.write_text(sshd.known_line())
    return path


def test_every_host_has_its_outcome_and_none_costs_another_its_history(
    session: Session, place: Place, tmp_path: Path, agent: Path, database: Path
) -> None:
    cut = script(tmp_path / "cut", f'#!/bin/sh\n{agent} "$@" | head -c 4000\n')
    dies = script(tmp_path / "dies", f'#!/bin/sh\n{agent} "$@" | head -c 3000\necho "gua: no disk" >&2\nexit 1\n')
    noisy = script(tmp_path / "noisy", f'#!/bin/sh\necho Welcome\n{agent} "$@"\necho Bye\n')
    old = script(tmp_path / "old", '#!/bin/sh\necho "gua: argument COMMAND: invalid choice: export" >&2\nexit 2\n')
    none = real_agent(tmp_path / "none", tmp_path / "missing.db")
    hosts = [
        local("good", agent),
        local("cut", cut),
        local("dies", dies),
        local("noisy", noisy),
        local("old", old),
        local("none", none),
        local("gone", tmp_path / "not-there"),
        local("off", agent, maintenance="new disks"),
    ]
    result = pulled(session, place, *hosts)
    outcomes = {one.host.name: (one.outcome.value, one.detail) for one in result.results}
    details = {name: detail or "" for name, (_, detail) in outcomes.items()}
    assert {name: outcome for name, (outcome, _) in outcomes.items()} == {
        "good": "ok",
        "cut": "bad-output",
        "dies": "agent-error",
        "noisy": "ok",
        "old": "agent-error",
        "none": "no-history",
        "gone": "agent-missing",
        "off": "maintenance",
    }
    assert "the export was cut" in details["cut"]
    assert "rows before it are kept, the next pull goes on from there" in details["cut"]
    assert "no disk" in details["dies"]
    for name in ("good", "noisy"):
        assert_kept(session, name, database)
    assert 0 < present(session, "cut").rev < present(session, "good").rev
    again = pulled(session, place, local("cut", agent), local("dies", agent))
    assert [one.outcome for one in again.results] == [Outcome.OK, Outcome.OK]
    for name in ("cut", "dies"):
        assert_kept(session, name, database)


def test_a_host_that_falls_silent_or_never_ends_is_left_in_time(
    session: Session, place: Place, tmp_path: Path, agent: Path
) -> None:
    silent = script(tmp_path / "silent", f'#!/bin/sh\n{agent} "$@" | head -c 4000\nexec sleep 600\n')
    flood = script(tmp_path / "flood", "#!/bin/sh\nexec yes flood\n")
    result = pulled(session, place, local("silent", silent), local("flood", flood), timeout_s=4.0)
    first, second = result.results
    assert (first.outcome_text, second.outcome) == ("timeout:output", Outcome.BAD_OUTPUT)
    assert "nothing more came within 4 s" in (first.detail or "")
    assert "the answer holds no export, and does not end: flood" in (second.detail or "")


def test_a_host_that_sends_too_much_is_stopped_and_told_and_goes_on_later(
    session: Session, place: Place, agent: Path, database: Path
) -> None:
    (result,) = pulled(session, place, local("much", agent), most_rows=100).results
    assert result.outcome is Outcome.BAD_OUTPUT
    assert "and was not done: stopped reading" in (result.detail or "")
    pulled(session, place, local("much", agent))
    assert_kept(session, "much", database)


def test_a_full_disk_is_said_loses_nothing_and_the_next_pull_goes_on(
    session: Session, place: Place, agent: Path, database: Path
) -> None:
    session.execute(f"PRAGMA max_page_count = {session.value('PRAGMA page_count')}")
    result = pulled(session, place, local("a", agent), local("b", agent), forks=1)
    assert [one.outcome for one in result.results] == [Outcome.STORE_FAILED] * 2
    assert isinstance(result.store_error, StoreUnusable)
    assert "full: make room there; nothing that was stored before is lost" in str(result.store_error)
    assert exit_status(result.results) == 1
    session.execute("PRAGMA max_page_count = 1000000")
    assert not pulled(session, place, local("a", agent), local("b", agent)).store_error
    for name in ("a", "b"):
        assert_kept(session, name, database)


def test_over_ssh_it_is_the_same(
    session: Session, place: Place, tmp_path: Path, agent: Path, database: Path, sshd: Sshd, keys: Keys, known: Path
) -> None:
    cut = script(tmp_path / "cut", f'#!/bin/sh\n{agent} "$@" | head -c 4000\n')
    chatty = script(tmp_path / "chatty", f'#!/bin/sh\nyes chat | head -c 3000000 >&2\n{agent} "$@"\n')
    hosts = [host(sshd, keys, known, each, name=each.name) for each in (agent, cut, chatty)]
    result = pulled(session, place, *hosts)
    assert [one.outcome.value for one in result.results] == ["ok", "bad-output", "bad-output"]
    assert "too much on stderr" in (result.results[2].detail or "")
    assert_kept(session, agent.name, database)
    assert pulled(session, place, host(sshd, keys, known, agent, name="cut")).results[0].outcome is Outcome.OK
    assert_kept(session, "cut", database)


def test_a_connection_cut_anywhere_costs_nothing_but_another_pull(
    session: Session, place: Place, tmp_path: Path, agent: Path, database: Path, sshd: Sshd, keys: Keys
) -> None:
    """Between two SSH programs, by the byte; `tests/bench/pull.py` does it hundreds of times."""
    known = tmp_path / "known_hosts"
    with contextlib.closing(Cutter(sshd.port)) as cutter:
        known.write_text(sshd.known_line().replace(str(sshd.port), str(cutter.port)))

        def pull_cut(name: str, after_bytes: int | None) -> Outcome:
            cutter.cut_after(after_bytes)
            (result,) = pulled(session, place, host(cutter.port, keys, known, agent, name=name)).results
            return result.outcome

        assert pull_cut("unbroken", None) is Outcome.OK
        whole, rng = cutter.sent, random.Random(8)
        for name in ("gpu1", "gpu2", "gpu3"):
            assert pull_cut(name, rng.randrange(whole * 3 // 4)) not in (Outcome.OK, Outcome.STORE_FAILED)
            pull_cut(name, rng.randrange(whole // 2))  # what is left may be less than that
            assert pull_cut(name, None) is Outcome.OK
            assert_kept(session, name, database)


def test_killed_in_mid_pull_again_and_again_nothing_is_lost_or_doubled(
    session: Session, place: Place, tmp_path: Path
) -> None:
    """At any moment between the first chunk and the last; `tests/bench/pull.py` does it a hundred times."""
    database = history(tmp_path / "gua.db", 0, 300)
    agent = real_agent(tmp_path / "gua", database)
    assert pulled(session, place, local("unbroken", agent)).results[0].outcome is Outcome.OK
    newest = present(session, "unbroken").rev
    rng, left, host_number = random.Random(8), 0, 0
    for number in range(5):
        host_number += left < LEAST_REVS
        folder, name = tmp_path / f"kill{number}", f"gpu{host_number}"
        before, reached = kill_in_mid_pull(folder, agent, place, name, rng.uniform(0, 0.05))
        assert before < reached < newest
        left = newest - reached
    assert session.value("PRAGMA integrity_check") == "ok"
    for name in {one.name for one in histories(session)}:
        assert pulled(session, place, local(name, agent)).results[0].outcome is Outcome.OK
        assert_kept(session, name, database)
        assert day_rows(session, present(session, name).id) == day_rows(session, present(session, "unbroken").id)


def test_a_postgresql_that_is_restarted_in_mid_pull_costs_nothing(
    postgres: Postgres, tmp_path: Path, agent: Path, database: Path
) -> None:
    """The agent stops after a part of its answer until the server has been started anew."""
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    halting = script(
        tmp_path / "halting",
        f'#!/bin/sh\n{agent} "$@" | (head -c 4000; touch {begun}; while [ ! -e {go_on} ]; do sleep 0.05; done; cat)\n',
    )
    place = Place(url=postgres.url)

    found: list[Pulled] = []
    with open_store(place, now_ms=NOW_MS) as session:
        # the server ends with the thread that starts it, so the pull is the one that gets a thread of its own
        work = threading.Thread(target=lambda: found.append(pulled(session, place, local("gpu01", halting))))
        work.start()
        while work.is_alive() and not begun.exists():
            work.join(0.05)
        postgres.stop()
        postgres.start()
        go_on.touch()
        work.join(120)
        (result,) = found[0].results
        assert (result.outcome, result.detail) == (Outcome.OK, None)
        assert_kept(session, "gpu01", database)


def test_a_postgresql_that_refuses_in_mid_pull_is_said_of_every_host(
    postgres: Postgres, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_PATIENCE_S", 0.5)
    place = Place(url=postgres.url)
    with open_store(place, now_ms=NOW_MS) as session:
        postgres.stop()
        try:
            result = pulled(session, place, local("a", agent), local("b", agent))
        finally:
            postgres.start()
    assert [one.outcome for one in result.results] == [Outcome.STORE_FAILED] * 2
    assert exit_status(result.results) == 1
    assert "connection" in str(result.store_error)
