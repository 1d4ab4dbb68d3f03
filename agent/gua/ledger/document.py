"""Shape of `gua.holds/1`: every hold of a window, worst first. A test compares it with the JSON Schema.

Amounts are card-seconds, times ISO 8601 UTC with `Z`, memory MiB. null: not known, never 0.
"""

from __future__ import annotations

from typing import Optional, TypedDict

from gua.report.document import RuleInfo, States

SCHEMA = "gua.holds/1"


class LedgerHost(TypedDict):
    hostname: str
    store_id: str
    agent_version: str


class LedgerWindow(TypedDict):
    """raw_begins: older single ticks are gone; null: none are."""

    since: str
    until: str
    history_begins: Optional[str]
    raw_begins: Optional[str]


class LedgerCard(TypedDict):
    uuid: str
    index: Optional[int]
    name: str
    memory_total_mb: Optional[int]
    retired_at: Optional[str]


class Asked(TypedDict):
    """What was asked for: null or false where nothing was left out for it. min_s: least card time."""

    user: Optional[str]
    card: Optional[str]
    min_s: Optional[float]
    now: bool
    graphics: bool


class LedgerHold(TypedDict):
    """One process on one card.

    until: null while its card's newest tick lists it (or could not look). listed_now: that tick did. last_seen: end of
    the newest tick that listed it. figures: `window`, the amounts are of the window asked; `life`, they are of the
    hold's whole life, because single ticks of it are gone; then longest_idle_s and card_util_pct are null.
    card_util_pct: mean of the card while held. sm_util_pct: the process's own mean over its life. memory_mb: held now,
    or last. memory_peak_mb: most that was seen in the window. mounts: whose directories its container mounts: a hint.
    """

    id: int
    process_key: str
    user: str
    user_source: str
    process: str
    pid: int
    type: str
    card: str
    index: Optional[int]
    since: str
    until: Optional[str]
    listed_now: bool
    last_seen: str
    figures: str
    card_s: float
    states: States
    idle_held_share: Optional[float]
    idle_held_long_card_s: float
    longest_idle_s: Optional[float]
    card_util_pct: Optional[float]
    sm_util_pct: Optional[float]
    memory_mb: Optional[int]
    memory_peak_mb: Optional[int]
    owner_uid: Optional[int]
    login_uid: Optional[int]
    container_id: Optional[str]
    slurm_job: Optional[str]
    mounts: Optional[str]


class Holds(TypedDict):
    """stale: the newest tick is too old to be called now, so nothing in here is a word on the present."""

    schema: str
    generated_at: str
    host: LedgerHost
    window: LedgerWindow
    rules: list[RuleInfo]
    rejudged: bool
    newest_tick_at: Optional[str]
    stale: bool
    tz: str
    asked: Asked
    cards: list[LedgerCard]
    holds: list[LedgerHold]
