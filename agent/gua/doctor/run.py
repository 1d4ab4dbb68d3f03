"""All checks, and the document `gua.doctor/1` they make."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from gua import __version__
from gua.clock import Clock
from gua.cloud.config import FILE_NAME
from gua.collect import Sampler
from gua.daemon.pause import refuse_when_paused
from gua.daemon.record import age_of_ticks_s
from gua.doctor import cloud, database, driver, host, modes, readings, sandbox
from gua.doctor.beside import Beside
from gua.doctor.check import FAIL, OK, QUESTIONS, SEVERITY, Check
from gua.doctor.question import Question, ask_module
from gua.driver_files import LOADER_CACHE, read_library_version, read_module_version
from gua.errors import GuaError, Paused
from gua.host import procfs_root
from gua.identity.proc import ProcFs
from gua.location import Location
from gua.model import Reason, Snapshot
from gua.pci import is_gpu_less, read_nvidia_devices, sysfs_root
from gua.schemas import DOCUMENTS
from gua.units import to_iso

SCHEMA = "gua.doctor/1"

# The whole may take ten seconds from the start of the program, with what killing and printing take.
BUDGET_S = 9.0
# What is left of them, after a sampler has used up its deadline, for ending its child and for the other checks.
_AFTER_SAMPLE_S = 2.0
# What is asked of healthy programs answers in less; without persistence mode a card needs seconds to wake.
_ANSWER_S = 3.0
# The request is a small file; a file system that does not give it by then will not answer for the database either.
_PAUSE_S = 1.0
_ORDER = list(QUESTIONS)


def sampling_deadline_s(left_s: float, set_s: float) -> float:
    """How long a sample may take, of the seconds left to the doctor and those of the settings."""
    return max(_ANSWER_S, min(set_s, left_s - _AFTER_SAMPLE_S))


def run_doctor(
    *,
    sampler: Sampler,
    clock: Clock,
    location: Location,
    trust_pid_namespace: bool,
    left_s: float = BUDGET_S,
    dev: Path = Path("/dev"),
    enrolment: Optional[Path] = None,
    ask_board: bool = False,
) -> dict[str, Any]:
    """Look at everything, change nothing, and answer worst first. Ready means that no check failed.

    sampler: asked once, as the daemon asks, and closed here; see `sampling_deadline_s`. left_s: all else is awaited
    for what the sample leaves of these seconds. enrolment: its file, None: beside the database. ask_board: contact it.
    """
    until_s = clock.monotonic_s() + left_s
    now_ms = clock.now_ms()
    storing = Beside(lambda: database.look(location.path, clock))
    enrolment = enrolment or location.path.with_name(FILE_NAME)
    board = Beside(lambda: cloud.look(enrolment, location.path, now_ms, ask_board=ask_board))
    smi = host.find_nvidia_smi()
    help_text = Question([smi, "-h"]) if smi is not None else None
    unit = Question(["systemctl", *sandbox.UNIT_COMMAND])
    try:
        snapshot = _sample(sampler, location.path, now_ms)
        # Before the sampler lets go of the driver, which without persistence mode would have to be woken again
        found = _ask_modes(snapshot, dev, min(_ANSWER_S, until_s - clock.monotonic_s()))
    finally:
        sampler.close()
    seen = _Seen(
        snapshot=snapshot,
        modes=found,
        smi=smi,
        smi_help="" if help_text is None else help_text.answer(until_s - clock.monotonic_s()).text,
        unit=unit.answer(until_s - clock.monotonic_s()).text,
        storage=storing.result(until_s - clock.monotonic_s()) or database.no_answer(location.path),
        cloud=board.result(until_s - clock.monotonic_s()) or cloud.no_answer(ask_board=ask_board),
    )
    judged_ms = clock.now_ms()
    return to_document(_checks(seen, location, judged_ms, dev, trusted=trust_pid_namespace), judged_ms)


@dataclass(frozen=True)
class _Seen:
    """What those who may take long have answered. modes: None when nothing could be asked; texts: empty then."""

    snapshot: Snapshot
    modes: Optional[modes.Modes]
    smi: Optional[str]
    smi_help: str
    unit: str
    storage: database.Storage
    cloud: Check


def _sample(sampler: Sampler, database_path: Path, now_ms: int) -> Snapshot:
    """One sample; none while somebody has asked that the driver be left alone: opening it would spoil a reset."""
    try:
        Beside(lambda: refuse_when_paused(database_path, now_ms)).result(_PAUSE_S)
    except Paused as exc:
        return driver.left_alone(str(exc))
    except GuaError:
        pass  # a request that nobody can read is obeyed by nobody
    return sampler.sample()


def _ask_modes(snapshot: Snapshot, dev: Path, timeout_s: float) -> Optional[modes.Modes]:
    """Asked only of a driver that has just answered: one that hangs would hold this program too."""
    hung = snapshot.unresponsive or any(slot.reason is Reason.UNRESPONSIVE for slot in snapshot.lost)
    if hung or driver.is_left_alone(snapshot):
        return None
    return modes.parse_modes(ask_module("gua.nvml.modes", str(dev / "nvidiactl")).answer(timeout_s).text)


def _checks(seen: _Seen, location: Location, now_ms: int, dev: Path, *, trusted: bool) -> list[Check]:
    procfs = procfs_root()
    ours = ProcFs(procfs)
    sysfs = sysfs_root()
    devices = read_nvidia_devices(sysfs)
    module = read_module_version(procfs)
    snapshot, history = seen.snapshot, seen.storage.history
    # A card that died in a reboot is on no bus any more, and loads no driver: the history alone knows of it
    gpu_less = is_gpu_less(devices, sysfs, procfs) and not history.known
    mounts = _mountinfo(procfs)
    read_ms = history.read_ms or now_ms
    hidepid = host.check_hidepid(mounts, groups=os.getgroups(), root=os.geteuid() == 0)
    namespace = host.check_pid_namespace(ours, trusted=trusted)
    ticked = database.good_tick(seen.storage.running, history, now_ms=read_ms)
    return [
        host.check_os(),
        host.check_device_files(dev, gpu_less=gpu_less, nvml_works=bool(snapshot.cards)),
        sandbox.check_sandbox(
            seen.unit,
            mounts,
            driver_loaded=module is not None,
            control_there=(dev / "nvidiactl").exists(),
            control_errno=None if seen.modes is None else seen.modes.control_errno,
        ),
        host.check_pci(devices, snapshot),
        host.check_nvidia_smi(seen.smi, seen.smi_help, module, gpu_less=gpu_less),
        driver.check_nvml(snapshot, history.known, gpu_less=gpu_less, ticked=ticked),
        driver.check_driver_match(module, snapshot, _library_version(seen.modes), ticked=ticked),
        modes.check_bindings(snapshot, seen.modes),
        modes.check_mig(snapshot, seen.modes),
        modes.check_persistence_mode(seen.modes),
        hidepid,
        namespace,
        readings.check_stuck_reading(
            history.zeroes, ours.boot_id(), ours.cpu_s, age_of_ticks_s, blind={hidepid.status, namespace.status} != {OK}
        ),
        host.check_clock(now_ms, history.newest_ms),
        database.check_database(location, history),
        database.check_database_integrity(history),
        seen.storage.rights,
        seen.storage.filesystem,
        database.check_daemon(seen.storage.running, history, now_ms=read_ms, gpu_less=gpu_less),
        cloud.with_silence(seen.cloud, seen.storage.running, history.last),
    ]


def to_document(checks: Sequence[Check], now_ms: int) -> dict[str, Any]:
    """The checks as `gua.doctor/1`, worst first, else in the order of QUESTIONS. Pure."""
    return {
        "schema": SCHEMA,
        "generated_at": to_iso(now_ms),
        "ready": all(check.status != FAIL for check in checks),
        "agent": {"version": __version__, "documents": sorted(DOCUMENTS)},
        "checks": [
            {
                "id": check.id,
                "status": check.status,
                "summary": check.summary,
                "cure": check.cure,
                "details": dict(check.details),
            }
            for check in sorted(checks, key=_rank)
        ],
    }


def _rank(check: Check) -> tuple[int, int]:
    return SEVERITY.index(check.status), _ORDER.index(check.id) if check.id in _ORDER else len(_ORDER)


def _library_version(found: Optional[modes.Modes]) -> Optional[str]:
    """Of the library that a program loads now: as one has just done, else by the files that `gua status` looks at."""
    return read_library_version(os.environ, LOADER_CACHE) if found is None else found.library_version


def _mountinfo(procfs: Path) -> str:
    try:
        return (procfs / "self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
