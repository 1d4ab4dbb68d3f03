import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from gua.classify import classify, evidence_of
from gua.config import load_settings
from gua.frames import unwrap_document
from gua.model import (
    DEFAULT_RULE,
    FIRST_SAMPLE,
    READING_UTIL,
    CardReading,
    CardTick,
    Fault,
    FaultKind,
    GpuProcess,
    KnownDevice,
    ProcessType,
    Tick,
    TickStatus,
)
from gua.observe import Asked, observe
from tests.agent.fakes import FakeClock
from tests.agent.running import MADE_UP, add_pci_card, run_gua, run_json, tick_statuses
from tests.nvml_stub import GIB, Card, Error, Process, Scene

PUSHLESS = ("sync-once", "--push", "never")
BROKEN = Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),))


def test_an_observation_tells_every_card_and_is_stored(tmp_path: Path, nvml_scene: Path) -> None:
    mine = Process(os.getpid(), 4 * GIB)
    Scene(cards=(Card("GPU-a", util=93), Card("GPU-b", memory_used=4 * GIB, processes=(mine,)))).save(nvml_scene)
    document = run_json(tmp_path, *PUSHLESS)
    assert (document["schema"], document["status"], document["errors"]) == ("gua.observation/1", "ok", [])
    assert (document["stored"], document["stored_reason"]) == (True, None)
    assert document["push"] == {"mode": "never", "result": "not-asked", "reason": None}
    first, second = document["cards"]
    assert (first["uuid"], first["index"], first["now"]["state"], first["now"]["util_pct"]) == (
        "GPU-a",
        0,
        "active",
        93,
    )
    assert (second["now"]["state"], second["now"]["memory_used_mb"]) == ("idle-held", 4096)
    (holder,) = second["now"]["holders"]
    assert (holder["pid"], holder["memory_mb"], holder["type"]) == (os.getpid(), 4096, "compute")
    assert len(document["host"]["store_id"]) == 32
    assert tick_statuses(tmp_path / "gua.db") == ["ok"]


def test_a_second_one_knows_since_when_and_which_card_is_gone(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a"), Card("GPU-b"))).save(nvml_scene)
    run_json(tmp_path, *PUSHLESS)
    Scene(cards=(Card("GPU-a"),)).save(nvml_scene)
    document = run_json(tmp_path, *PUSHLESS)
    assert document["status"] == "partial"
    gone = document["cards"][1]
    assert (gone["uuid"], gone["now"]["state"], gone["now"]["reason"]) == ("GPU-b", "unknown", "card_missing")
    assert document["errors"] == ["card_missing: card GPU-b"]


def test_a_card_that_cannot_be_opened_and_nobody_knows_is_told(tmp_path: Path, nvml_scene: Path) -> None:
    lost = Error("nvmlDeviceGetHandleByIndex", "GPU_IS_LOST")
    Scene(cards=(Card("GPU-a"), Card("GPU-b", rules=(lost,)))).save(nvml_scene)
    document = run_json(tmp_path, *PUSHLESS)
    assert (document["status"], len(document["cards"])) == ("partial", 1)
    assert document["errors"] == ["card_lost: card 1, never seen before: GPU_IS_LOST"]


def test_a_failed_process_list_is_partial_with_its_word(tmp_path: Path, nvml_scene: Path) -> None:
    refused = Error("nvmlDeviceGetComputeRunningProcesses", "UNKNOWN")
    Scene(cards=(Card("GPU-a", rules=(refused,)),)).save(nvml_scene)
    document = run_json(tmp_path, *PUSHLESS)
    assert (document["status"], document["cards"][0]["now"]["state"]) == ("partial", "unknown")
    assert document["errors"] == ["process_list_unavailable: card GPU-a: UNKNOWN"]


def test_without_nvml_nothing_is_written_and_the_controller_hears_why(tmp_path: Path, nvml_scene: Path) -> None:
    BROKEN.save(nvml_scene)
    add_pci_card(tmp_path)
    done = run_gua(tmp_path, *PUSHLESS, "--frame", "0" * 32)
    document = json.loads(unwrap_document(done.stdout.encode(), "0" * 32))
    assert done.returncode == 1
    assert (document["status"], document["cards"], document["stored"]) == ("error", [], False)
    assert document["errors"][0].startswith("nvml_init_failed: DRIVER_NOT_LOADED")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "gua.db").exists()


def test_a_host_without_a_card_is_a_quiet_state(tmp_path: Path, nvml_scene: Path) -> None:
    for scene in (BROKEN, Scene()):
        scene.save(nvml_scene)
        done = run_gua(tmp_path, *PUSHLESS, "--json")
        assert done.returncode == 0
        document = json.loads(done.stdout)
        assert (document["status"], document["stored"], document["errors"]) == ("no-gpu", False, [])
    assert not (tmp_path / "gua.db").exists()


def test_a_history_that_cannot_be_read_is_no_witness_that_there_is_no_card(tmp_path: Path, nvml_scene: Path) -> None:
    BROKEN.save(nvml_scene)
    run_gua(tmp_path, *PUSHLESS, "--fake")
    _make_newer(tmp_path / "gua.db")
    done = run_gua(tmp_path, *PUSHLESS, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["status"]) == (1, "error")
    assert document["errors"][-1].startswith("history_unavailable: ")


def test_a_card_in_mig_mode_without_an_instance_is_no_failure(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-a", mig_max=7),)).save(nvml_scene)
    document = run_json(tmp_path, *PUSHLESS)
    assert (document["status"], document["cards"], document["errors"]) == ("ok", [], [])


def test_nvml_without_a_card_of_those_on_the_bus_is_a_failure(tmp_path: Path, nvml_scene: Path) -> None:
    Scene().save(nvml_scene)
    add_pci_card(tmp_path)
    done = run_gua(tmp_path, *PUSHLESS, "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (1, "error")


def test_a_push_needs_a_board_and_that_is_found_before_collecting(tmp_path: Path) -> None:
    done = run_gua(tmp_path, "sync-once", "--fake")
    assert (done.returncode, done.stdout) == (2, "")
    assert "run `gua enroll` first" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "gua.db").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_without_the_right_to_write_it_is_answered_unstored(tmp_path: Path) -> None:
    home = tmp_path / "closed"
    home.mkdir()
    run_gua(home, *PUSHLESS, "--fake")
    (home / "gua.db").chmod(0o440)
    home.chmod(0o550)
    document = run_json(home, *PUSHLESS, "--fake")
    home.chmod(0o750)
    assert (document["status"] in MADE_UP, document["stored"]) == (True, False)
    assert "no permission" in document["stored_reason"]


def test_a_database_that_cannot_be_used_is_told_and_the_observation_kept(tmp_path: Path) -> None:
    run_gua(tmp_path, *PUSHLESS, "--fake")
    _make_newer(tmp_path / "gua.db")
    done = run_gua(tmp_path, *PUSHLESS, "--fake", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert (document["stored"], len(document["cards"])) == (False, 8)
    assert "Traceback" not in done.stderr


def _make_newer(database: Path) -> None:
    import contextlib
    import sqlite3

    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version = 999")
        connection.commit()


def test_people_get_a_line_a_card(tmp_path: Path) -> None:
    done = run_gua(tmp_path, *PUSHLESS, "--fake")
    assert done.returncode == 0
    head, *lines = done.stdout.splitlines()
    assert re.search(": (ok|partial), 8 cards, stored$", head)
    assert len([line for line in lines if not line.startswith("  !")]) == 8


def test_the_interval_of_a_timer_has_the_limits_of_the_daemons(tmp_path: Path) -> None:
    done = run_gua(tmp_path, *PUSHLESS, "--fake", "--interval", "1000d")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gua: --interval: '1000d' is too long; write 24h or less\n"


def test_the_interval_of_a_timer_is_covered(tmp_path: Path) -> None:
    import contextlib
    import sqlite3

    run_gua(tmp_path, *PUSHLESS, "--fake", "--interval", "5m")
    with contextlib.closing(sqlite3.connect(tmp_path / "gua.db")) as connection:
        assert connection.execute("SELECT cover_ms FROM tick").fetchall() == [(300_000,)]


class TwoLooks:
    """A held MIG instance, whose activity is known from the second look on; or one that can never say."""

    def __init__(self, error: str) -> None:
        self.error = error
        self.looks = 0

    def collect(self, *, ts_ms: int, cover_ms: int, known: Sequence[KnownDevice]) -> Tick:
        self.looks += 1
        begun = self.looks == 1 or self.error != FIRST_SAMPLE
        fault = Fault("nvmlGpmMetricsGet", self.error, FaultKind.UNSUPPORTED)
        reading = CardReading(
            "MIG-a",
            0,
            util_pct=None if begun else 40,
            processes=(GpuProcess(4242, ProcessType.COMPUTE, 4096),),
            faults={READING_UTIL: fault} if begun else {},
        )
        evidence = evidence_of(reading)
        card = CardTick(reading, evidence, classify(evidence, DEFAULT_RULE), ())
        return Tick(ts_ms=ts_ms, status=TickStatus.OK, cover_ms=cover_ms, cards=(card,))

    def close(self) -> bool:
        return True


@pytest.mark.parametrize(("error", "looks", "state"), [(FIRST_SAMPLE, 2, "active"), ("NOT_SUPPORTED", 1, "unknown")])
def test_a_held_mig_instance_is_looked_at_twice_where_that_tells_more(
    tmp_path: Path, error: str, looks: int, state: str
) -> None:
    source, clock = TwoLooks(error), FakeClock()
    begun_s = clock.monotonic_s()
    asked = Asked(tmp_path / "gua.db", 0, "never", fake=False)
    document = observe(source, clock, load_settings(environ={}), asked).document
    assert (source.looks, document["cards"][0]["now"]["state"]) == (looks, state)
    assert clock.monotonic_s() - begun_s >= 0.1 * (looks - 1)
