"""What the board is told of a tick: always within the contract, and no reading passed off as 0 in silence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gua.classify import classify, evidence_of
from gua.cloud.payload import Sender, to_payload
from gua.model import (
    CardReading,
    CardTick,
    Fault,
    FaultKind,
    GpuProcess,
    Holder,
    LostSlot,
    ProcessIdentity,
    ProcessType,
    Reason,
    Tick,
    TickStatus,
    UserSource,
)
from tests.agent.store.ticks import MONDAY, card, holder, tick
from tests.board.contract import additions_in, faults_of

SENDER = Sender("node-1", "host-1", "Node 1")
IDLE = card("GPU-a", 0)
HELD = card("GPU-b", 3, (holder("ada", 7, memory_mb=4_000),))
BUSY = card("GPU-c", 93, (holder("bob", 8, memory_mb=None), holder("gdm", 9, type=ProcessType.GRAPHICS)))


def body(made: Tick, revision: int = 2, *, broken: bool = False) -> Any:
    """The body, after it was found to fit the contract."""
    payload = to_payload(made, SENDER, revision, broken=broken)
    assert faults_of(payload.body) == []
    return payload.body


def with_reading(made: CardTick, **changes: Any) -> CardTick:
    reading = replace(made.reading, **changes)
    return replace(made, reading=reading, verdict=classify(evidence_of(reading)))


def test_a_healthy_tick_is_told_whole() -> None:
    told = body(tick(MONDAY, IDLE, HELD, BUSY))
    assert (told["collectionStatus"], told["errors"], told["observedAt"]) == ("ok", [], "2026-03-02T00:00:00Z")
    assert told["host"]["hostname"] == "node-1"
    assert told["host"]["driverVersion"] == "550.90.07"
    assert [gpu["usageState"] for gpu in told["gpus"]] == ["idle", "idle_held", "active"]
    assert [gpu["utilPct"] for gpu in told["gpus"]] == [0, 3, 93]
    assert told["gpus"][1]["processes"] == [
        {"pid": 7, "linuxUser": "ada", "name": "python", "memoryUsedMb": 4_000, "type": "compute"}
    ]
    bob, screen = told["gpus"][2]["processes"]
    assert (bob["memoryUsedMb"], screen["type"]) == (None, "graphics")


def test_revision_1_has_none_of_the_additions_and_says_what_it_cannot() -> None:
    made = tick(MONDAY, IDLE, HELD, BUSY)
    told = body(made, 1)
    assert list(additions_in(told)) == []
    assert list(additions_in(body(made))) != []
    assert (told["collectionStatus"], told["errors"]) == ("partial", ["memory_unavailable"])
    assert body(tick(MONDAY, IDLE, HELD), 1)["collectionStatus"] == "ok"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"util_pct": None}, "utilization_unavailable"),
        ({"memory_used_mb": None}, "memory_unavailable"),
        ({"processes": None}, "process_list_unavailable"),
        (
            {
                "faults": {
                    "mps_processes": Fault("nvmlDeviceGetMPSComputeRunningProcesses", "UNKNOWN", FaultKind.FAILED)
                }
            },
            "process_list_unavailable",
        ),
    ],
)
def test_a_reading_that_failed_is_named_and_the_rest_sent(changes: dict[str, Any], code: str) -> None:
    told = body(tick(MONDAY, with_reading(IDLE, **changes), HELD))
    assert (told["collectionStatus"], told["errors"]) == ("partial", [code])
    assert "usageState" not in told["gpus"][0]
    assert told["gpus"][1]["usageState"] == "idle_held"
    assert body(tick(MONDAY, IDLE, HELD))["collectionStatus"] == "ok"


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.CARD_LOST, "card_lost"),
        (Reason.CARD_MISSING, "card_lost"),
        (Reason.UNRESPONSIVE, "nvml_unresponsive"),
    ],
)
def test_a_card_that_is_gone_is_there_without_a_state(reason: Reason, code: str) -> None:
    gone = CardReading("GPU-z", index=1, name="NVIDIA A100", memory_total_mb=81_920, absent=reason)
    absent = CardTick(gone, evidence_of(gone), classify(evidence_of(gone)))
    told = body(tick(MONDAY, IDLE, absent))
    assert (told["collectionStatus"], told["errors"]) == ("partial", [code])
    assert told["gpus"][1]["uuid"] == "GPU-z"
    assert "usageState" not in told["gpus"][1]


def test_a_card_of_unknown_size_is_left_out_and_named() -> None:
    payload = to_payload(tick(MONDAY, IDLE, with_reading(HELD, memory_total_mb=None)), SENDER, 2)
    assert [gpu["uuid"] for gpu in payload.body["gpus"]] == ["GPU-a"]
    assert payload.body["errors"] == ["memory_unavailable"]
    (line,) = payload.left_out
    assert "GPU-b" in line


def test_a_card_that_nobody_ever_saw_is_still_an_error() -> None:
    slot = LostSlot(3, Fault("nvmlDeviceGetHandleByIndex", "GPU_IS_LOST", FaultKind.FAILED))
    assert body(replace(tick(MONDAY, IDLE), strangers=(slot,)))["errors"] == ["card_lost"]


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (TickStatus.UNRESPONSIVE, None, "nvml_unresponsive"),
        (TickStatus.ERROR, "DRIVER_NOT_LOADED", "nvml_init_failed"),
        (TickStatus.ERROR, "LIB_RM_VERSION_MISMATCH", "driver_mismatch"),
    ],
)
def test_a_broken_driver_is_a_heartbeat(status: TickStatus, error: Optional[str], code: str) -> None:
    fault = None if error is None else Fault("nvmlInit_v2", error, FaultKind.FAILED)
    made = replace(tick(MONDAY, card(absent=Reason.DRIVER), status=status), fault=fault, driver_version=None)
    told = body(made)
    assert (told["collectionStatus"], told["errors"], told["gpus"]) == ("error", [code], [])
    assert told["host"]["driverVersion"] == "unknown"


def test_no_card_at_all_is_ok_unless_the_bus_has_one() -> None:
    assert body(tick(MONDAY))["collectionStatus"] == "ok"
    assert body(tick(MONDAY), broken=True)["errors"] == ["nvml_init_failed"]


def test_names_of_a_workload_cannot_steer_anything() -> None:
    rude = card("GPU-a", 0, (holder("", 7, name=""), holder("al\x1bice", 8, name="\x1b]0;x\x07" + "x" * 300)))
    empty, steering = body(tick(MONDAY, rude))["gpus"][0]["processes"]
    assert (empty["linuxUser"], empty["name"]) == ("unknown", "unknown")
    assert "\x1b" not in steering["linuxUser"] + steering["name"]


NUMBERS = st.none() | st.integers(-(2**31), 2**31)
TEXTS = st.text(max_size=5)


@st.composite
def cards(draw: st.DrawFn) -> CardTick:
    """A card whose driver says anything at all."""
    processes = tuple(
        GpuProcess(draw(st.integers(-5, 2**22)), draw(st.sampled_from(ProcessType)), draw(NUMBERS))
        for _ in range(draw(st.integers(0, 2)))
    )
    reading = CardReading(
        uuid=draw(TEXTS),
        index=draw(NUMBERS),
        name=draw(st.none() | TEXTS),
        memory_total_mb=draw(NUMBERS),
        memory_used_mb=draw(NUMBERS),
        util_pct=draw(NUMBERS),
        processes=draw(st.none() | st.just(processes)),
        temperature_c=draw(NUMBERS),
        power_w=draw(st.none() | st.floats(-1e9, 1e9)),
        absent=draw(st.none() | st.sampled_from(Reason)),
    )
    holders = tuple(
        Holder(process, ProcessIdentity("b", process.pid, None, draw(TEXTS), draw(TEXTS), UserSource.OWNER))
        for process in reading.processes or ()
    )
    return CardTick(reading, evidence_of(reading), classify(evidence_of(reading)), holders)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(cards(), max_size=3), st.sampled_from(TickStatus), st.sampled_from([1, 2]))
def test_whatever_a_driver_says_fits_the_contract(made: list[CardTick], status: TickStatus, revision: int) -> None:
    told = body(tick(MONDAY, *made, status=status), revision)
    assert revision == 2 or list(additions_in(told)) == []
    unknown = [one for one in made if one.verdict.reason is not None]
    assert not unknown or told["collectionStatus"] != "ok"
