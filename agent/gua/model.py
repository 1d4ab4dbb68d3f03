"""The values that travel between the agent's rooms: frozen, typed, and free of any outside library.

    nvml worker -> Snapshot -> reconcile -> CardReading -> Evidence -> classify -> Verdict -> Tick -> store

Three results are kept apart everywhere: a value; `None` with a `Fault` of kind UNSUPPORTED (this card cannot
say); `None` with a `Fault` of kind FAILED (it should have worked). No reading is ever truth-tested: 0 is a value.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional


class State(str, enum.Enum):
    """What one card did during one tick. The values are the words of every document and table."""

    ACTIVE = "active"
    IDLE_HELD = "idle-held"
    TRULY_IDLE = "truly-idle"
    UNKNOWN = "unknown"


class Reason(str, enum.Enum):
    """Why a state is UNKNOWN."""

    UTIL_UNAVAILABLE = "util_unavailable"
    PROCESSES_UNAVAILABLE = "processes_unavailable"
    MEMORY_UNAVAILABLE = "memory_unavailable"
    CARD_LOST = "card_lost"
    CARD_MISSING = "card_missing"
    DRIVER = "driver"
    UNRESPONSIVE = "unresponsive"


class TickStatus(str, enum.Enum):
    """How one sampling of all cards went.

    OK: every reading that this hardware supports came. PARTIAL: something failed or a known card is absent.
    ERROR: the driver could not be used. UNRESPONSIVE: NVML did not answer by the deadline.
    """

    OK = "ok"
    PARTIAL = "partial"
    ERROR = "error"
    UNRESPONSIVE = "unresponsive"


class FaultKind(str, enum.Enum):
    UNSUPPORTED = "unsupported"
    FAILED = "failed"


@dataclass(frozen=True)
class Fault:
    """One NVML call that gave no value.

    call: the C function, `nvmlDeviceGetUtilizationRates`. error: NVML's name, `GPU_IS_LOST`, or a Python
    exception's class where the bindings raised something else. message: one line for people.
    """

    call: str
    error: str
    kind: FaultKind
    message: str = ""


class ProcessType(str, enum.Enum):
    """Which of NVML's lists named the process. COMPUTE and MPS processes hold a card, GRAPHICS ones do not."""

    COMPUTE = "compute"
    MPS = "mps"
    GRAPHICS = "graphics"


@dataclass(frozen=True)
class GpuProcess:
    """One process as NVML lists it on one card, once (de-duplicated over the lists; the strongest type wins).

    memory_mb: MiB held on this card; None when the driver does not say. sm_util_pct: 0-100, mean share of the card's
    multiprocessors it used since the previous tick (nvmlDeviceGetProcessUtilization); None when that is not known.
    """

    pid: int
    type: ProcessType
    memory_mb: Optional[int]
    sm_util_pct: Optional[float] = None


class MemorySource(str, enum.Enum):
    """Where `memory_used_mb` came from: V2 excludes what the driver reserves, V1 counts it as used.

    UNIFIED: the board shares memory with the CPU (GB10, Jetson): it has no total and no used figure of its own.
    """

    V2 = "v2"
    V1 = "v1"
    UNIFIED = "unified"


class UtilSource(str, enum.Enum):
    """Where `util_pct` came from. POINT: one reading, which sees the driver's last fraction of a second only.
    SAMPLES: mean over all samples the driver kept since the previous tick. GPM: mean by the card's own counters.
    """

    POINT = "point"
    SAMPLES = "samples"
    GPM = "gpm"


@dataclass(frozen=True)
class Mig:
    """A MIG instance's parent card and profile (`1g.10gb`)."""

    parent_uuid: str
    profile: str


# Error of a figure of the time between two samples, at the first of them.
FIRST_SAMPLE = "FIRST_SAMPLE"
# Error of utilisation samples that are always 0 on a card that works by its point reading.
SAMPLES_CONTRADICTED = "SAMPLES_CONTRADICTED"

# Keys of `CardReading.faults`: one per reading, so that a missing value can always be explained.
READING_UTIL = "util"
READING_UTIL_SAMPLES = "util_samples"
READING_PROCESS_USE = "process_use"
READING_MEMORY = "memory"
READING_COMPUTE = "compute_processes"
READING_MPS = "mps_processes"
READING_GRAPHICS = "graphics_processes"
READING_NAME = "name"
READING_TEMPERATURE = "temperature"
READING_POWER = "power"
READING_ENERGY = "energy"
READING_HANDLE = "handle"
READING_PCI = "pci_bus_id"
READING_MIG = "mig_mode"


@dataclass(frozen=True)
class CardReading:
    """One card at one tick, as far as it could be read.

    A field is None exactly when `faults` says why under its key (except `mig`, `index`, `absent` and what is known
    of an interval only: util_max_pct and the processes' sm_util_pct, whose faults are there when they failed).
    absent: the card is known here but could not be reached at all (CARD_LOST, CARD_MISSING, DRIVER or
    UNRESPONSIVE); then every reading is None and `faults` may name the call that failed.
    processes: every process of the three lists; None when the compute list could not be read or believed.
    util_pct: 0-100, the mean since the previous tick where util_source says so (the rule judges it), else of a moment.
    util_max_pct: highest within the interval where the driver keeps samples, else None. util_source: None without util.
    power_w: watts. energy_mj: the card's own counter in millijoules since driver load.
    """

    uuid: str
    index: Optional[int] = None
    pci_bus_id: Optional[str] = None
    name: Optional[str] = None
    memory_total_mb: Optional[int] = None
    memory_used_mb: Optional[int] = None
    memory_source: Optional[MemorySource] = None
    util_pct: Optional[int] = None
    util_max_pct: Optional[int] = None
    util_source: Optional[UtilSource] = None
    processes: Optional[tuple[GpuProcess, ...]] = None
    temperature_c: Optional[int] = None
    power_w: Optional[float] = None
    energy_mj: Optional[int] = None
    mig: Optional[Mig] = None
    absent: Optional[Reason] = None
    faults: Mapping[str, Fault] = field(default_factory=dict)


@dataclass(frozen=True)
class LostSlot:
    """A card that NVML counts and that could not be read at all, or MIG instances whose card does not list them.

    uuid: the card's or instance's, where it is known; otherwise only the index is. reason: CARD_LOST, or
    UNRESPONSIVE for one that is left out because its calls do not return.
    """

    index: int
    fault: Fault
    uuid: Optional[str] = None
    reason: Reason = Reason.CARD_LOST


@dataclass(frozen=True)
class Snapshot:
    """Everything the sampling child answers for one tick. Holds no time: the parent stamps it.

    fault: a driver-level failure (cards is then empty). unresponsive: the child missed its deadline; `fault` then is
    about the call that was waited for.
    cards in NVML index order, MIG instances after their parent's place, the parent of MIG instances left out.
    mig_parents: UUIDs of the cards cut into instances, also of those that have none now.
    missing_calls: NVML functions that this driver or nvidia-ml-py lacks, and that were asked for.
    """

    cards: tuple[CardReading, ...] = ()
    lost: tuple[LostSlot, ...] = ()
    mig_parents: tuple[str, ...] = ()
    missing_calls: tuple[str, ...] = ()
    driver_version: Optional[str] = None
    nvml_version: Optional[str] = None
    fault: Optional[Fault] = None
    unresponsive: bool = False


@dataclass(frozen=True)
class Rule:
    """The thresholds of the one classification rule. Percent, MiB, seconds; all comparisons are strict
    as written: active is util >= active_util_pct; held is memory > held_mb; unattributed is > unattributed_mb.
    """

    active_util_pct: int = 10
    held_mb: int = 100
    unattributed_mb: int = 500
    unattributed_v1_mb: int = 1500
    long_idle_s: int = 1800


DEFAULT_RULE = Rule()


@dataclass(frozen=True)
class Evidence:
    """What classification needs of one card-tick; stored with the sample, so it can be judged again later.

    absent: see CardReading. util_pct None: not measurable.
    holders: number of compute and MPS processes; None when the lists could not be read or believed.
    held_mb: sum over those with a known amount. held_unknown: at least one of them has no known amount.
    unattributed_mb: used memory that no listed process accounts for; None when that cannot be computed.
    graphics_unknown: some graphics process has no known amount, so unattributed_mb is only an upper bound.
    memory_v1: the used figure counts the driver's own reserve. unified: no memory figure exists by design.
    """

    absent: Optional[Reason] = None
    util_pct: Optional[int] = None
    holders: Optional[int] = None
    held_mb: int = 0
    held_unknown: bool = False
    unattributed_mb: Optional[int] = None
    graphics_unknown: bool = False
    memory_v1: bool = False
    unified: bool = False
    mig: bool = False


@dataclass(frozen=True)
class Verdict:
    """State of one card-tick; reason is set exactly when state is UNKNOWN."""

    state: State
    reason: Optional[Reason] = None


class UserSource(str, enum.Enum):
    """Which rule named the user of a process."""

    OWNER = "owner"
    LOGINUID = "loginuid"
    SLICE = "slice"
    SUBUID = "subuid"
    CONTAINER = "container"
    SYSTEM = "system"
    UNKNOWN = "unknown"
    UNATTRIBUTED = "unattributed"


USER_UNKNOWN = "unknown"
USER_UNATTRIBUTED = "unattributed"


@dataclass(frozen=True)
class ProcessIdentity:
    """Who a process is: key (boot_id, pid, start_ticks), never the pid alone.

    start_ticks: field 22 of /proc/PID/stat, clock ticks since boot; None when /proc/PID could not be read
    (then user is `unknown`). name: /proc/PID/comm, raw; escape it where shown.
    user: a name, `uid:N`, `container:ID12`, `unknown`. uid: the number that `user` was resolved from, else None.
    mount_hint: for a container's process, whose directories it mounts ("/home/alice"), fit to be shown; never a charge.
    """

    boot_id: str
    pid: int
    start_ticks: Optional[int]
    name: str
    user: str
    user_source: UserSource
    uid: Optional[int] = None
    owner_uid: Optional[int] = None
    login_uid: Optional[int] = None
    container_id: Optional[str] = None
    slurm_job: Optional[str] = None
    mount_hint: Optional[str] = None


@dataclass(frozen=True)
class Holder:
    """One listed process together with who it is."""

    process: GpuProcess
    identity: ProcessIdentity


@dataclass(frozen=True)
class CardTick:
    """One card at one tick, judged. holders: every listed process, graphics too; empty when none is known.

    rule: the thresholds that judged it, where this card's model has its own; None: the run's.
    """

    reading: CardReading
    evidence: Evidence
    verdict: Verdict
    holders: tuple[Holder, ...] = ()
    rule: Optional[Rule] = None


@dataclass(frozen=True)
class Tick:
    """One sampling of all cards of the host, ready to be stored.

    ts_ms: Unix UTC milliseconds when sampling began. cover_ms: how much time it may stand for (the run's
    interval; 0 for a `sync-once` outside a timer). cards: every card known here and not retired, absent ones too.
    mig_parents: see Snapshot. strangers: slots that NVML counts and cannot open, and that are no known card's.
    """

    ts_ms: int
    status: TickStatus
    cover_ms: int
    cards: tuple[CardTick, ...]
    driver_version: Optional[str] = None
    fault: Optional[Fault] = None
    mig_parents: tuple[str, ...] = ()
    strangers: tuple[LostSlot, ...] = ()


@dataclass(frozen=True)
class KnownDevice:
    """A card this host's history knows and still expects to see: it was never retired.

    index and the rest are as last seen. first_seen_ms, last_seen_ms: Unix UTC milliseconds of the first tick that
    knew it and of the newest tick that reached it (None: it was only ever absent).
    """

    uuid: str
    index: Optional[int]
    pci_bus_id: Optional[str]
    name: Optional[str]
    memory_total_mb: Optional[int]
    mig: Optional[Mig]
    first_seen_ms: int
    last_seen_ms: Optional[int]
