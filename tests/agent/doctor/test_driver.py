from dataclasses import replace
from pathlib import Path

import pytest

from gua.doctor.driver import check_driver_match, check_nvml, left_alone
from gua.driver_files import read_module_version
from gua.model import CardReading, Fault, FaultKind, KnownDevice, LostSlot, MemorySource, Mig, Reason, Snapshot

MISMATCH = Fault("nvmlInit", "LIB_RM_VERSION_MISMATCH", FaultKind.FAILED, "Driver/library version mismatch")
LOST = Fault("nvmlDeviceGetHandleByIndex_v2", "GPU_IS_LOST", FaultKind.FAILED)
CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
    "GCC version:  gcc version 12.2.0\n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U16)\n"
    "GCC version:  gcc version 12.2.0\n"
)


def procfs(root: Path, version: str) -> Path:
    (root / "driver/nvidia").mkdir(parents=True)
    (root / "driver/nvidia/version").write_text(version)
    return root


def test_all_cards_answer() -> None:
    check = check_nvml(Snapshot(cards=(CardReading("GPU-a"),), driver_version="570.86.15"), (), gpu_less=False)
    assert (check.status, check.summary, check.details["gpus"]) == ("ok", "1 cards, driver 570.86.15", 1)


def test_cards_in_mig_mode_without_an_instance_are_no_failure() -> None:
    assert check_nvml(Snapshot(mig_parents=("GPU-a",)), (), gpu_less=False).status == "ok"


def test_a_lost_card_fails_by_index_and_error() -> None:
    check = check_nvml(Snapshot(cards=(CardReading("GPU-a"),), lost=(LostSlot(2, LOST),)), (), gpu_less=False)
    assert (check.status, check.summary) == ("fail", "card 2: GPU_IS_LOST")


def test_a_lost_card_that_the_history_knows_is_named_with_its_address() -> None:
    known = KnownDevice("GPU-c", 2, "00000000:3B:00.0", "H100", 81559, None, 0, 1)
    lost = Snapshot(cards=(CardReading("GPU-a", 0),), lost=(LostSlot(2, LOST),))
    assert check_nvml(lost, [known], gpu_less=False).summary == "card 2 at 00000000:3B:00.0, GPU-c: GPU_IS_LOST"
    gone = Snapshot(cards=(CardReading("GPU-a", 0),))
    check = check_nvml(gone, [known], gpu_less=False)
    assert check.status == "fail"
    assert check.summary == "card 2 at 00000000:3B:00.0, GPU-c: missing, NVML does not list it"


def test_a_lost_card_that_nobody_knows_is_told_beside_one_that_the_history_knows() -> None:
    known = KnownDevice("GPU-c", 2, "00000000:3B:00.0", "H100", 81559, None, 0, 1)
    lost = Snapshot(cards=(CardReading("GPU-a", 0),), lost=(LostSlot(2, LOST), LostSlot(3, LOST)))
    summary = check_nvml(lost, [known], gpu_less=False).summary
    assert summary == "card 2 at 00000000:3B:00.0, GPU-c: GPU_IS_LOST; card 3: GPU_IS_LOST"


def test_a_card_whose_calls_hang_is_named_like_a_lost_one() -> None:
    stuck = Fault("nvmlDeviceGetUtilizationRates", "NO_ANSWER", FaultKind.FAILED)
    does_not = "nvmlDeviceGetUtilizationRates does not return in time"
    slot = LostSlot(1, stuck, "GPU-c", Reason.UNRESPONSIVE)
    known = KnownDevice("GPU-c", 1, "00000000:3B:00.0", "H100", 81559, None, 0, 1)
    seen = Snapshot(cards=(CardReading("GPU-a", 0),), lost=(slot,))
    assert check_nvml(seen, [known], gpu_less=False).summary == f"card 1 at 00000000:3B:00.0, GPU-c: {does_not}"
    assert check_nvml(seen, [], gpu_less=False).summary == f"card 1, GPU-c: {does_not}"


def test_a_driver_that_is_left_alone_is_not_judged() -> None:
    check = check_nvml(left_alone("paused until 12:00"), [], gpu_less=False)
    assert (check.status, "paused" in check.summary) == ("skip", True)
    assert check_driver_match("535.104.05", left_alone("paused")).status == "skip"


def test_a_failed_reading_warns_with_its_card_address_and_error() -> None:
    card = CardReading("GPU-a", 3, "00000000:3B:00.0", faults={"util": Fault("x", "UNKNOWN", FaultKind.FAILED)})
    check = check_nvml(Snapshot(cards=(card,)), (), gpu_less=False)
    assert (check.status, check.summary) == ("warn", "card 3 at 00000000:3B:00.0: util UNKNOWN")


@pytest.mark.parametrize("key", ["util", "compute_processes", "memory"])
def test_a_card_that_never_says_what_its_state_needs_is_warned_of(key: str) -> None:
    """Its time is unknown for ever, so all is not well."""
    card = CardReading("GPU-a", 3, "0:1", faults={key: Fault("x", "NOT_SUPPORTED", FaultKind.UNSUPPORTED)})
    check = check_nvml(Snapshot(cards=(card,)), (), gpu_less=False)
    assert check.status == "warn"
    assert check.summary == f"card 3 at 0:1: {key} NOT_SUPPORTED: what is idle there will be unknown"


@pytest.mark.parametrize(
    ("key", "card"),
    [
        ("util", CardReading("MIG-a", mig=Mig("GPU-a", "1g.10gb"))),
        ("memory", CardReading("GPU-a", memory_source=MemorySource.UNIFIED)),
    ],
)
def test_what_no_such_card_says_by_design_is_no_warning(key: str, card: CardReading) -> None:
    card = replace(card, faults={key: Fault("x", "NOT_SUPPORTED", FaultKind.UNSUPPORTED)})
    assert check_nvml(Snapshot(cards=(card,)), (), gpu_less=False).status == "ok"


def test_what_a_card_cannot_say_is_no_fault() -> None:
    card = CardReading("GPU-a", faults={"energy": Fault("x", "NOT_SUPPORTED", FaultKind.UNSUPPORTED)})
    assert check_nvml(Snapshot(cards=(card,)), (), gpu_less=False).status == "ok"


@pytest.mark.parametrize(("gpu_less", "status"), [(True, "skip"), (False, "fail")])
def test_no_nvml_is_quiet_only_on_a_host_without_a_card(gpu_less: bool, status: str) -> None:
    fault = Fault("nvmlInit", "LIBRARY_NOT_FOUND", FaultKind.FAILED, "NVML Shared Library Not Found")
    check = check_nvml(Snapshot(fault=fault), (), gpu_less=gpu_less)
    assert check.status == status
    assert (check.cure is None) == gpu_less


def test_a_driver_that_does_not_answer_fails_whatever_the_bus_shows() -> None:
    assert check_nvml(Snapshot(unresponsive=True), (), gpu_less=True).status == "fail"


def test_nvml_without_cards_fails_where_there_should_be_some() -> None:
    assert check_nvml(Snapshot(), (), gpu_less=False).status == "fail"
    assert check_nvml(Snapshot(), (), gpu_less=True).status == "ok"


@pytest.mark.parametrize(("text", "version"), [(CLOSED, "535.104.05"), (OPEN, "570.86.15")])
def test_equal_versions_of_module_and_library_are_ok(tmp_path: Path, text: str, version: str) -> None:
    check = check_driver_match(read_module_version(procfs(tmp_path, text)), Snapshot(driver_version=version))
    assert (check.status, check.details["kernel_module"]) == ("ok", version)


def test_different_versions_fail_with_both(tmp_path: Path) -> None:
    check = check_driver_match(read_module_version(procfs(tmp_path, CLOSED)), Snapshot(driver_version="570.86.15"))
    assert (check.status, check.summary) == ("fail", "kernel module 535.104.05, library 570.86.15")


def test_a_mismatch_beside_a_daemon_that_samples_on_says_so_and_for_how_long() -> None:
    on = "last tick ok, 12 s old"
    match = check_driver_match("535.104.05", Snapshot(fault=MISMATCH), library="570.86.15", ticked=on)
    assert match.status == "fail"
    assert match.summary == (
        f"kernel module 535.104.05, library 570.86.15: the running daemon ({on}) samples on with the library loaded "
        "before, but will not after its next start, and no new job can use the cards"
    )
    nvml = check_nvml(Snapshot(fault=MISMATCH), (), gpu_less=False, ticked=on)
    assert nvml.status == "fail"
    assert nvml.summary.endswith(f"; the running daemon ({on}) samples on, see driver_match")
    other = Fault("nvmlInit", "DRIVER_NOT_LOADED", FaultKind.FAILED)
    assert "daemon" not in check_nvml(Snapshot(fault=other), (), gpu_less=False, ticked=on).summary


def test_a_mismatch_told_by_nvml_fails_with_both_versions(tmp_path: Path) -> None:
    check = check_driver_match("535.104.05", Snapshot(fault=MISMATCH), library="570.86.15")
    assert (check.status, check.summary) == ("fail", "kernel module 535.104.05, library 570.86.15")
    assert check.details == {"kernel_module": "535.104.05", "library": "570.86.15"}


def test_a_mismatch_whose_versions_are_not_known_fails_all_the_same(tmp_path: Path) -> None:
    check = check_driver_match(read_module_version(procfs(tmp_path, CLOSED)), Snapshot(fault=MISMATCH))
    assert check.status == "fail"
    assert "535.104.05" in check.summary
    assert "reboot" in (check.cure or "")


def test_nothing_to_compare_is_skipped(tmp_path: Path) -> None:
    assert check_driver_match(read_module_version(tmp_path), Snapshot(driver_version="570.86.15")).status == "skip"
    assert (
        check_driver_match(
            read_module_version(procfs(tmp_path, "rubbish")), Snapshot(driver_version="570.86.15")
        ).status
        == "skip"
    )


def test_a_card_lost_while_it_is_read_is_named_with_that_error() -> None:
    fault = Fault("nvmlDeviceGetUtilizationRates", "GPU_IS_LOST", FaultKind.FAILED)
    card = CardReading("GPU-c", 2, "00000000:3B:00.0", absent=Reason.CARD_LOST, faults={"util": fault})
    check = check_nvml(Snapshot(cards=(card,)), (), gpu_less=False)
    assert (check.status, check.summary) == ("fail", "card 2 at 00000000:3B:00.0, GPU-c: GPU_IS_LOST")
