"""Shape of `gua report --format json`: what the agent builds, people read, and the controller adds up.

All amounts are sums in card-seconds (or joules), so documents of several hosts add. Times are ISO 8601 UTC
with `Z`. A `States` map always has its four keys. The JSON Schema in `gua/schemas/` says the same; a test compares.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Optional, TypedDict, cast

from gua.model import Rule

SCHEMA = "gua.report/1"

# Keys are the values of gua.model.State; amounts are card-seconds (or joules where the field says so).
States = TypedDict("States", {"active": float, "idle-held": float, "truly-idle": float, "unknown": float})


class HostPaused(TypedDict, total=False):
    """Always written today, absent from older agents' documents. paused: let go of the driver on purpose, now."""

    paused: bool


class HostInfo(HostPaused):
    hostname: str
    store_id: str
    boot_id: str
    machine_id: str
    agent_version: str
    driver_version: Optional[str]
    scheduler: Optional[str]


class Window(TypedDict):
    since: str
    until: str
    history_begins: Optional[str]


class RuleInfo(TypedDict):
    active_util_pct: int
    held_mb: int
    unattributed_mb: int
    unattributed_v1_mb: int
    long_idle_s: int


def rule_info(rule: Rule) -> RuleInfo:
    """The thresholds as the document has them."""
    return cast(RuleInfo, asdict(rule))


class TickCounts(TypedDict):
    ok: int
    partial: int
    error: int
    unresponsive: int


class Coverage(TypedDict):
    expected_card_s: float
    observed_card_s: float
    unobserved_card_s: float
    unknown_by_reason: dict[str, float]
    ticks: TickCounts


class MigInfo(TypedDict):
    parent_uuid: str
    profile: str


class Usage(TypedDict, total=False):
    """Absent from older agents' documents. sm_util_pct: the process's own mean use of the card's multiprocessors,
    0-100, null where unknown. mounts: whose directories its container mounts, a hint and never a charge.
    """

    sm_util_pct: Optional[float]
    mounts: Optional[str]
    user_source: str


class HolderMore(Usage, total=False):
    """Absent from older agents' documents. since: when it was first seen on this card."""

    since: str


class HolderNow(HolderMore):
    user: str
    process: str
    pid: int
    memory_mb: Optional[int]
    type: str


class NowMore(TypedDict, total=False):
    """Absent from older agents' documents. util_max_pct: highest within the interval. util_source: see model."""

    util_max_pct: Optional[int]
    util_source: Optional[str]


class Now(NowMore):
    """The newest tick's view of one card. `since`: when this state began, by unbroken ticks."""

    at: str
    state: str
    reason: Optional[str]
    util_pct: Optional[int]
    memory_used_mb: Optional[int]
    since: str
    holders: list[HolderNow]


class CardMore(TypedDict, total=False):
    """Absent from older agents' documents. held_unmeasured_s: the part of unknown time in which somebody held the card
    and its activity could not be measured. active_unheld_s: the part of active time in which nobody was listed on it.
    own_rule: that of its model, where the settings give it one; null: judged as cards are by default.
    """

    unknown_by_reason: dict[str, float]
    held_unmeasured_s: float
    active_unheld_s: float
    own_rule: Optional[RuleInfo]


class Card(CardMore):
    """energy_j: null when nothing of it is known; energy_known_s: how much of card_s it stands for."""

    uuid: str
    index: Optional[int]
    name: str
    memory_total_mb: Optional[int]
    mig: Optional[MigInfo]
    retired_at: Optional[str]
    card_s: States
    samples: int
    energy_j: Optional[States]
    energy_known_s: float
    expected_card_s: float
    unobserved_card_s: float
    now: Optional[Now]


class UserMore(TypedDict, total=False):
    """Absent from older agents' documents. cards: how many cards were held in the window. held_mb: MiB held on each of
    them, the mean over the time they were held; null where the driver did not say.
    """

    cards: int
    held_mb: Optional[float]


class User(UserMore):
    """energy_j: null when nothing of it is known; energy_known_s: how much of share_s it stands for."""

    user: str
    uid: Optional[int]
    user_source: str
    card_s: float
    share_s: float
    shared_card_s: float
    states: States
    idle_held_card_s: float
    idle_held_long_card_s: float
    energy_j: Optional[float]
    energy_known_s: float
    samples: int


class HourOfWeek(TypedDict):
    weekday: int
    hour: int
    card_s: States


class HoldMore(Usage, total=False):
    """Absent from older agents' documents. id: of the hold in this store. process_key: boot, pid and start time."""

    id: int
    process_key: str


class Hold(HoldMore):
    """One process on one card. states: of its whole life; where `rejudged`, of that part which lies in the window."""

    user: str
    process: str
    pid: int
    card: str
    since: str
    until: Optional[str]
    memory_mb: Optional[int]
    states: States
    idle_held_long_card_s: float


class Finding(TypedDict):
    id: str
    severity: str
    card: Optional[str]
    text: str


class Sensitivity(TypedDict):
    """The headline as another rule would have it."""

    rule: RuleInfo
    card_s: States


class CardSteps(TypedDict):
    """One card's seconds by step: [active, idle-held, truly-idle, unknown, unobserved] each."""

    card: str
    steps: list[list[float]]


class Timeline(TypedDict):
    """The window cut into equal steps, few enough to draw; the first may begin before the window."""

    since: str
    step_s: int
    cards: list[CardSteps]


class ReportMore(TypedDict, total=False):
    """rejudged: the states come from raw ticks judged again under `rules`, not from the rule in force then.

    user: the document names this user only (sums of the host stay whole). sensitivity, timeline: only where asked for.
    """

    rejudged: bool
    user: Optional[str]
    sensitivity: list[Sensitivity]
    timeline: Timeline


class Report(ReportMore):
    schema: str
    generated_at: str
    host: HostInfo
    window: Window
    rules: list[RuleInfo]
    intervals_s: list[float]
    coverage: Coverage
    card_s: States
    samples: int
    cards: list[Card]
    users: list[User]
    tz: str
    hours_of_week: list[HourOfWeek]
    holds: list[Hold]
    findings: list[Finding]
