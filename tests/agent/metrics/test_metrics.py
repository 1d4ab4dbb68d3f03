"""The metrics, read back by Prometheus's own parser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.clock import SystemClock
from gua.config import load_settings
from gua.daemon.metrics import read_metrics
from gua.daemon.textfile import Textfile
from gua.errors import GuaError
from gua.metrics import names
from gua.metrics.build import build_metrics
from gua.metrics.names import METRICS
from gua.metrics.text import to_text
from gua.metrics.write import FILE_NAME, remove_left_behind, remove_textfile, write_textfile
from tests.agent.running import PATIENCE_S, wait_until
from tests.agent.store.opened import SetClock, stored
from tests.agent.store.ticks import MINUTE, MONDAY, SECOND, holder, tick
from tests.agent.store.ticks import card as card_tick
from tests.documents import card, now, report, states, user

parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")

STATUS = {
    "running": True,
    "last_tick_at": "2026-03-02T11:59:50Z",
    "last_tick_age_s": 20.0,
    "last_tick_status": "ok",
    "interval_s": 30.0,
    "board": None,
}
HOLDER = {"user": "ada", "process": "python", "pid": 7, "memory_mb": 100, "type": "compute"}
XORG = {"user": "gdm", "process": "Xorg", "pid": 8, "memory_mb": 4, "type": "graphics"}

Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parse(text: str) -> Values:
    """(name, labels) -> value; every family has help and a type, and no sample is there twice."""
    found: Values = {}
    for family in parser.text_string_to_metric_families(text):
        assert family.documentation
        assert family.type == "gauge"
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def metrics(document: dict[str, Any], *, per_user: bool = False, status: Any = None, warmth: Any = None) -> Values:
    built = build_metrics(document, status or STATUS, warmth or {}, per_user=per_user)  # type: ignore[arg-type]
    return parse(to_text(built))


def of(found: Values, name: str, **labels: str) -> Any:
    return found.get((name, tuple(sorted(labels.items()))))


def test_a_card_by_its_newest_tick_and_by_today() -> None:
    held = now("idle-held", util_pct=7, memory_used_mb=2, holders=[HOLDER, {**HOLDER, "pid": 9}, XORG])
    found = metrics(
        report([card("GPU-a", states(active=3600, held=1800), now=held, energy_j=states(active=5.5))]),
        warmth={"GPU-a": (71.5, 40)},
    )
    by_state = {state: of(found, "gua_card_state", uuid="GPU-a", state=state) for state in states()}
    assert by_state == {"active": 0, "idle-held": 1, "truly-idle": 0, "unknown": 0}
    assert of(found, "gua_card_utilization_ratio", uuid="GPU-a") == 0.07
    assert of(found, "gua_card_memory_used_bytes", uuid="GPU-a") == 2 * 1024 * 1024
    assert of(found, "gua_card_power_watts", uuid="GPU-a") == 71.5
    assert of(found, "gua_card_temperature_celsius", uuid="GPU-a") == 40
    assert of(found, "gua_card_users", uuid="GPU-a") == 1
    assert of(found, "gua_card_state_since_timestamp_seconds", uuid="GPU-a") == 1772449200
    assert of(found, "gua_today_card_seconds", uuid="GPU-a", state="idle-held") == 1800
    assert of(found, "gua_today_unobserved_card_seconds", uuid="GPU-a") == 4 * 3600 - 5400
    assert of(found, "gua_today_energy_joules", uuid="GPU-a", state="active") == 5.5
    assert of(found, "gua_last_tick_age_seconds") == 20
    assert of(found, "gua_last_tick_status", status="ok") == 1
    assert of(found, "gua_daemon_running") == 1


def test_what_is_not_known_is_absent_and_never_zero() -> None:
    lost = now("unknown", reason="card_lost", util_pct=None, memory_used_mb=None)
    found = metrics(report([card("GPU-a", states(unknown=60), now=lost, memory_total_mb=None)]))
    names_of_card = {name for name, labels in found if ("uuid", "GPU-a") in labels and name.startswith("gua_card_")}
    assert names_of_card == {
        *("gua_card_info", "gua_card_state", "gua_card_unknown_reason", "gua_card_state_since_timestamp_seconds")
    }
    assert of(found, "gua_card_state", uuid="GPU-a", state="unknown") == 1
    assert of(found, "gua_card_unknown_reason", uuid="GPU-a", reason="card_lost") == 1
    assert of(found, "gua_today_energy_joules", uuid="GPU-a", state="active") is None


@pytest.mark.parametrize("at", ["2026-03-02T11:00:00Z", "2026-03-02T13:00:00Z"])
def test_an_old_tick_is_no_word_on_the_present(at: str) -> None:
    held = now("active", at=at, util_pct=93, holders=[HOLDER])
    status = {**STATUS, "running": False, "last_tick_age_s": 3610.0}
    found = metrics(
        report([card("GPU-a", states(active=60), now=held)], [user("ada", states(active=60))]),
        status=status,
        per_user=True,
    )
    fresh = {metric.name for metric in METRICS if metric.fresh}
    assert "gua_card_state" in fresh
    assert {name for name, _ in found} & fresh == set()
    assert of(found, "gua_last_tick_age_seconds") == 3610
    assert of(found, "gua_daemon_running") == 0
    assert of(found, "gua_today_card_seconds", uuid="GPU-a", state="active") == 60


def test_before_the_first_tick_there_is_no_age() -> None:
    status = {"running": True, "last_tick_at": None, "interval_s": None, "board": None}
    found = metrics(report([]), status=status)
    assert of(found, "gua_daemon_running") == 1
    assert of(found, "gua_cards") == 0
    assert not [name for name, _ in found if name.startswith("gua_last_tick")]


def test_what_the_board_took_is_told_and_never_is_absent() -> None:
    accepted, failing = "gua_board_last_accepted_timestamp_seconds", "gua_board_failing_since_timestamp_seconds"
    never = dict.fromkeys(("last_accepted_at", "last_accepted_age_s", "none_since", "failing_since", "reason"))
    took = {**never, "last_accepted_at": "2026-03-02T11:59:50Z", "last_accepted_age_s": 10.0}
    fails = {**took, "failing_since": "2026-03-02T12:00:00.500Z", "reason": "connection refused"}
    boards = (None, never, took, fails)
    found = [metrics(report([]), status={**STATUS, "board": board}) for board in boards]
    at = 1_772_452_790
    assert [of(one, accepted) for one in found] == [None, None, at, at]
    assert [of(one, failing) for one in found] == [None, None, None, at + 10.5]


def test_people_are_named_only_where_that_was_asked_for() -> None:
    document = report(
        [card("GPU-a", states(held=60), now=now("idle-held", holders=[HOLDER])), card("GPU-b", states(), now=None)],
        [user("ada", states(held=60)), user("ada", states(held=30)), user('-rf\n\x1b"\\名', states(active=5))],
    )
    assert not [labels for _, labels in metrics(document) if "user" in dict(labels)]
    found = metrics(document, per_user=True)
    assert of(found, "gua_user_cards", user="ada", state="idle-held") == 1
    assert of(found, "gua_today_user_card_seconds", user="ada") == 90  # two accounts of one name
    assert of(found, "gua_today_user_idle_held_card_seconds", user="ada") == 90
    assert of(found, "gua_today_user_share_seconds", user='-rf\\x0a\\x1b"\\名') == 5


@given(st.text(max_size=30), st.floats(allow_nan=False, allow_infinity=False))
def test_any_text_and_any_number_come_back_from_the_parser(text: str, number: float) -> None:
    found = parse(to_text([(names.USER_TODAY, (text,), number)]))
    assert list(found.values()) == [number]
    assert list(found) == [("gua_today_user_card_seconds", (("user", text),))]


def test_names_keep_to_the_conventions() -> None:
    base_units = ("seconds", "bytes", "watts", "celsius", "joules", "ratio", "info")
    plain = {"gua_daemon_running", "gua_paused", "gua_last_tick_status", "gua_cards", "gua_card_state"}
    plain |= {"gua_card_unknown_reason", "gua_card_users", "gua_today_ticks", "gua_user_cards"}
    assert {metric.name for metric in METRICS if not metric.name.endswith(base_units)} == plain
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    assert all(metric.per_user == ("user" in metric.labels) for metric in METRICS)
    assert not [metric.name for metric in METRICS if metric.name.endswith("_total")]  # none only ever grows


def awkward(tmp_path: Path) -> Path:
    cards = (card_tick("GPU-a", util_pct=90, holders=(holder("ada"),)), card_tick("GPU-b", util_pct=None))
    ticks = [tick(MONDAY + n * 30 * SECOND, *cards) for n in range(10)]
    return stored(tmp_path / "gua.db", ticks)


def test_of_a_real_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    path, clock = awkward(tmp_path), SetClock(MONDAY + 5 * MINUTE)
    found = parse(read_metrics(path, clock, scheduler=None, per_user=True))  # type: ignore[arg-type]
    assert of(found, "gua_today_card_seconds", uuid="GPU-a", state="active") == 300
    assert of(found, "gua_today_ticks", status="ok") == 10
    assert of(found, "gua_card_state", uuid="GPU-b", state="unknown") == 1
    assert of(found, "gua_card_power_watts", uuid="GPU-a") == 100
    assert of(found, "gua_last_tick_age_seconds") == 30
    assert of(found, "gua_daemon_running") == 0  # nobody has its lock
    clock.ms = MONDAY + 60 * MINUTE
    later = parse(read_metrics(path, clock, scheduler=None, per_user=True))  # type: ignore[arg-type]
    assert of(later, "gua_card_state", uuid="GPU-a", state="active") is None
    assert of(later, "gua_last_tick_age_seconds") == 60 * 60 - 270


def test_promtool_finds_nothing_to_say(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here")
    text = read_metrics(awkward(tmp_path), SetClock(MONDAY + 5 * MINUTE), scheduler=None, per_user=True)  # type: ignore[arg-type]
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_file_is_replaced_in_one_step_and_readable_by_the_collector(tmp_path: Path) -> None:
    write_textfile(tmp_path, "one 1\n")
    with (tmp_path / FILE_NAME).open() as reading:
        write_textfile(tmp_path, "two 2\n")
        assert reading.read() == "one 1\n"
    assert (tmp_path / FILE_NAME).read_text() == "two 2\n"
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o644
    remove_textfile(tmp_path)
    remove_textfile(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_others_put_there_is_not_written_through_and_what_was_left_goes(tmp_path: Path) -> None:
    precious, mine = tmp_path / "precious", f".gua.prom.{os.getpid()}"
    precious.write_text("history")
    (tmp_path / mine).symlink_to(precious)
    write_textfile(tmp_path, "one 1\n")
    assert precious.read_text() == "history"
    left, at_work = tmp_path / ".gua.prom.left", tmp_path / ".gua.prom.work"
    for path in (left, at_work):
        path.touch()
    os.utime(left, (1, 1))
    remove_left_behind(tmp_path)
    assert (left.exists(), at_work.exists()) == (False, True)


def test_what_cannot_be_written_anew_does_not_stand_for_ever(tmp_path: Path) -> None:
    """The database is gone for good; the file of its last minute would say "active" for the rest of the year."""
    (tmp_path / FILE_NAME).write_text("gua_daemon_running 1\n")
    settings = load_settings(environ={"GUA_DAEMON_INTERVAL": "100ms"})
    textfile = Textfile(tmp_path, tmp_path / "no.db", SystemClock(), settings, False)
    wait_until(lambda: not (tmp_path / FILE_NAME).exists(), "the file to go")
    assert textfile.close(PATIENCE_S)


def test_a_directory_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(GuaError, match="name a directory"):
        write_textfile(tmp_path / "no", "one 1\n")


def test_the_command_prints_them_or_writes_the_file(tmp_path: Path) -> None:
    path = awkward(tmp_path)
    line = [sys.executable, "-m", "gua", "metrics", "--db", str(path)]
    printed = subprocess.run(line, capture_output=True, text=True)
    assert printed.returncode == 0
    assert of(parse(printed.stdout), "gua_cards") == 2
    written = subprocess.run([*line, "--textfile", str(tmp_path)], capture_output=True, text=True)
    assert (written.returncode, written.stdout) == (0, "")
    assert of(parse((tmp_path / FILE_NAME).read_text()), "gua_cards") == 2
    missing = subprocess.run([*line[:-1], str(tmp_path / "no.db")], capture_output=True, text=True)
    assert (missing.returncode, missing.stdout) == (2, "")
