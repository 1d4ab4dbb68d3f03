"""Shape of `gua.explain/1`: the evidence behind a figure. A test compares it with the JSON Schema.

Amounts are card-seconds, times ISO 8601 UTC with `Z`, memory MiB. null: not known, never 0.
"""

from __future__ import annotations

from typing import Optional, TypedDict

from gua.ledger.document import LedgerCard, LedgerHost, LedgerWindow
from gua.report.document import RuleInfo, States

SCHEMA = "gua.explain/1"


class ComparisonInfo(TypedDict):
    """threshold: a field of the rule. margin: how far the reading is from it. over: it is on its upper side."""

    threshold: str
    value: int
    limit: int
    unit: str
    margin: int
    over: bool


class DecisionInfo(TypedDict):
    """comparisons in the order they were made; the last one decided, unless `because` names what did."""

    comparisons: list[ComparisonInfo]
    because: Optional[str]
    text: str


class SeenHolder(TypedDict):
    """A process as one tick listed it. user_source: the rule that named the user; source_text: that rule in words."""

    hold: int
    user: str
    user_source: str
    source_text: str
    process: str
    pid: int
    type: str
    memory_mb: Optional[int]
    owner_uid: Optional[int]
    login_uid: Optional[int]
    container_id: Optional[str]
    slurm_job: Optional[str]
    mounts: Optional[str]


class TickInfo(TypedDict):
    """One tick of one card. covers: [since, until] each. holders: null where the lists could not be read.

    unknown: what could not be read, in words. fault: what the driver said where it could not be used.
    """

    at: str
    covers: list[list[str]]
    status: str
    fault: Optional[str]
    state: str
    reason: Optional[str]
    rule: RuleInfo
    decision: DecisionInfo
    util_pct: Optional[int]
    util_max_pct: Optional[int]
    util_source: Optional[str]
    memory_used_mb: Optional[int]
    held_mb: Optional[int]
    unattributed_mb: Optional[int]
    temperature_c: Optional[int]
    power_w: Optional[float]
    holders: Optional[list[SeenHolder]]
    unknown: list[str]


class StretchHolder(TypedDict):
    hold: int
    user: str
    process: str
    pid: int
    type: str
    memory_mb: Optional[int]


class StretchInfo(TypedDict):
    """Ticks in which nothing changed. card_s: seen within it. ranges are [lowest, highest]. util_unknown_ticks: of them
    without a utilisation. holders: null where the lists could not be read; memory as the last tick saw it.
    """

    since: str
    until: str
    ticks: int
    card_s: float
    state: str
    reason: Optional[str]
    rule: RuleInfo
    util_pct: Optional[list[int]]
    util_unknown_ticks: int
    memory_used_mb: Optional[list[int]]
    statuses: list[str]
    holders: Optional[list[StretchHolder]]


class GapInfo(TypedDict):
    """why: see gaps.Gap."""

    since: str
    until: str
    why: str
    text: str


class SlotHolder(TypedDict):
    user: str
    card_s: float


class RolledUp(TypedDict):
    """A quarter-hour of a card whose single ticks are gone: its sums, and who held it for how long of it."""

    since: str
    until: str
    card_s: States
    samples: int
    holders: list[SlotHolder]


class Sharing(TypedDict):
    """Time in which `users` users held the card: each is credited the whole card time and its part of the share."""

    users: int
    card_s: float
    share_s: float
    idle_held_long_card_s: float
    states: States
    samples: int


class UserFigure(TypedDict):
    """As `gua report --user` shows them."""

    card_s: float
    share_s: float
    shared_card_s: float
    idle_held_card_s: float
    idle_held_long_card_s: float
    states: States
    samples: int


class UserHold(TypedDict):
    """card_s: time in the window that ticks listed it. since, until (null: not over): of its whole life."""

    id: int
    process: str
    pid: int
    user_source: str
    source_text: str
    since: str
    until: Optional[str]
    card_s: float
    memory_mb: Optional[int]
    owner_uid: Optional[int]
    login_uid: Optional[int]
    container_id: Optional[str]
    slurm_job: Optional[str]
    mounts: Optional[str]


class UserCard(TypedDict):
    """One card that the user held. sharing: from single ticks; rolled_up: sums of the time whose ticks are gone, null
    where there is none. total: both together. counted_once_s: time of the user's holds that fell together and counts
    once. unlisted_s: time within a hold whose ticks could not read the lists: it charges nobody.
    """

    card: LedgerCard
    total: UserFigure
    sharing: list[Sharing]
    rolled_up: Optional[UserFigure]
    counted_once_s: float
    unlisted_s: float
    holds: list[UserHold]
    stretches: list[StretchInfo]
    gaps: list[GapInfo]


class CardAnswer(TypedDict):
    """What one card did at a moment. tick: the one that covers `at`, null where none does; then gap or rolled_up say
    what is known instead. stretch: the ticks around it in which nothing changed, as far as a day on each side.
    around: the nearest ticks before and after. holds: of that moment, known though single ticks are gone.
    """

    card: LedgerCard
    at: str
    tick: Optional[TickInfo]
    stretch: Optional[StretchInfo]
    gap: Optional[GapInfo]
    rolled_up: Optional[RolledUp]
    rollups_begin: Optional[str]
    around: list[TickInfo]
    holds: list[UserHold]


class UserAnswer(TypedDict):
    """How a user's figure comes about. report: the figure; total: what the cards below add up to; they are the same."""

    user: str
    report: UserFigure
    total: UserFigure
    cards: list[UserCard]


class Explained(TypedDict):
    """card: for `--card`, else null. user: for `--user`, else null. window: what was looked at."""

    schema: str
    generated_at: str
    host: LedgerHost
    window: LedgerWindow
    rules: list[RuleInfo]
    tz: str
    card: Optional[CardAnswer]
    user: Optional[UserAnswer]
