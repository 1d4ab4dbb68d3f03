"""Drivers that come late, are reloaded, or never answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from gua.nvml.child import Child
from tests.agent.nvml.clients import HEALTHY, LONG_MS, Start, child_of, error_of, until, warm
from tests.nvml_stub import Card, Delay, Error, Scene

pytestmark = pytest.mark.processes


def test_reloaded_driver_costs_no_sample(start: Start, nvml_scene: Path) -> None:
    client = start()
    warm(client, nvml_scene)
    Scene(cards=(Card("GPU-a", util=6),), driver="580.1", generation=1).save(nvml_scene)
    seen = client.sample()
    assert (seen.driver_version, [card.util_pct for card in seen.cards]) == ("580.1", [6])


@pytest.mark.parametrize("error", ["DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH"])
def test_driver_that_comes_late_is_picked_up_within_two_samples(start: Start, nvml_scene: Path, error: str) -> None:
    Scene(rules=(Error("nvmlInit", error),)).save(nvml_scene)
    client = start()
    assert [error_of(client.sample()) for _ in range(5)] == [error] * 5
    HEALTHY.save(nvml_scene)
    assert any(client.sample().cards for _ in range(2))


def test_broken_driver_is_tried_every_other_time_at_short_intervals(
    start: Start, nvml_scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),)).save(nvml_scene)
    client = start()
    now_s = 0.0
    monkeypatch.setattr(client, "_clock", type("Still", (), {"monotonic_s": lambda _: now_s})())
    starts: list[float] = []
    launch = Child.__init__

    def count(self: Child, *args: object, **options: object) -> None:
        starts.append(now_s)
        launch(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Child, "__init__", count)
    for _ in range(6):
        assert error_of(client.sample()) == "DRIVER_NOT_LOADED"
        now_s += 0.2
    assert len(starts) == 3
    for _ in range(3):
        now_s += 30.0
        client.sample()
    assert len(starts) == 6


def test_library_that_reaches_no_card_any_more_is_loaded_afresh(start: Start, nvml_scene: Path) -> None:
    """The driver was upgraded beneath a running child: its calls fail, and only a new start tells why."""
    client = start()
    warm(client, nvml_scene)
    upgraded = (Error("nvmlInit", "LIB_RM_VERSION_MISMATCH"), Error("*", "UNKNOWN"))
    Scene(cards=(Card("GPU-a"),), rules=upgraded).save(nvml_scene)
    assert error_of(client.sample()) == "LIB_RM_VERSION_MISMATCH"


def test_slow_initialisation_is_left_to_finish(start: Start, nvml_scene: Path) -> None:
    slow = Scene(cards=(Card("GPU-a", util=5),), rules=(Delay("nvmlInit", 4000),))
    slow.save(nvml_scene)
    client = start(deadline_s=1.5)
    assert client.sample().unresponsive
    pid = child_of(client)
    until(lambda: bool(client.sample().cards))
    assert child_of(client) == pid


def test_initialisation_without_end_is_given_up(start: Start, nvml_scene: Path) -> None:
    Scene(rules=(Delay("nvmlInit", LONG_MS),)).save(nvml_scene)
    client = start(deadline_s=0.3, start_grace_s=0.3)
    assert client.sample().unresponsive
    assert client._child is None


def test_a_driver_that_never_answers_is_warned_of_once(
    start: Start, nvml_scene: Path, caplog: pytest.LogCaptureFixture
) -> None:
    HEALTHY.save(nvml_scene)
    client = start(start_grace_s=0.0, deadline_s=0.2)
    Scene(rules=(Delay("nvmlInit", 60_000),)).save(nvml_scene)
    for _ in range(4):
        assert client.sample().unresponsive
    assert caplog.text.count("missed its deadline") == 1


def test_a_library_that_is_installed_late_is_found_within_two_samples(
    start: Start, nvml_scene: Path, nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    HEALTHY.save(nvml_scene)
    folder = tmp_path / "lib"
    folder.mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    client = start()
    first = client.sample()
    if first.fault is None or first.fault.error != "LIBRARY_NOT_FOUND":
        pytest.skip("this machine has a driver of its own")
    (folder / nvml_library.name).symlink_to(nvml_library)
    assert any(client.sample().cards for _ in range(2))
