"""What an export is made of: every data set and column, with its kind, its unit and what it means. Pure.

The documentation and the files come from here. Names end in their unit: `_s` seconds, `_j` joules, `_mb` MiB, `_pct`
percent, `_w` watts, `_c` degrees Celsius. Empty (null) is unknown, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

VERSION = 1

Kind = Literal["text", "int", "float", "bool", "time"]
"""time: Unix UTC milliseconds here; a UTC timestamp in Parquet, ISO 8601 with Z in CSV."""


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class Dataset:
    """daily: its rows lie in a folder for each UTC day, by the time named in `by`; else in one file."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    by: str | None = None

    @property
    def daily(self) -> bool:
        return self.by is not None


_HOST = Column("host", "text", "the host's name in the inventory")
_CARD = Column("card_uuid", "text", "the card, or MIG instance")
_SLOT = Column("slot_start", "time", "where the quarter-hour begins")
_STATE = Column("state", "text", "active, idle-held, truly-idle or unknown")
_REASON = Column("reason", "text", "why the state is unknown; empty for the other states")
_RULE = Column("rule", "int", "the rule that judged it: `rule` of the same host and history in `rules`")
_HISTORY = Column("history", "int", "which of the host's databases: see `hosts`")
_ENERGY = (
    Column("energy_j", "float", "energy, of the time for which power was known"),
    Column("energy_known_s", "float", "how much of the time that is"),
)
_USER = (
    Column("user", "text", "the person, after the user map; NAME@HOST where a name means something there only"),
    Column("user_source", "text", "by which rule the host named that user"),
)

DATASETS: tuple[Dataset, ...] = (
    Dataset(
        "card_slots",
        "card time by quarter-hour and state; they add up",
        (
            *(_HOST, _HISTORY, _CARD, _SLOT, _STATE, _REASON, _RULE),
            Column("covered_s", "float", "card time seen in that state"),
            Column("samples", "int", "samples taken in it"),
            *_ENERGY,
        ),
        by="slot_start",
    ),
    Dataset(
        "user_slots",
        "card time by quarter-hour, state and user",
        (
            *(_HOST, _HISTORY, _CARD, *_USER, _SLOT, _STATE, _RULE),
            Column("card_s", "float", "time held, the card counted whole for each of its users"),
            Column("share_s", "float", "that time divided among the card's users; adds up to held time"),
            Column("shared_s", "float", "how much of card_s was with others"),
            Column("idle_long_s", "float", "how much of card_s was in long idle-held stretches"),
            *_ENERGY,
            Column("samples", "int", "samples that saw the user on the card"),
        ),
        by="slot_start",
    ),
    Dataset(
        "tick_slots",
        "how often the host looked, by quarter-hour",
        (
            *(_HOST, _HISTORY, _SLOT),
            Column("status", "text", "ok, partial, error or unresponsive"),
            Column("interval_s", "float", "the time that each might have covered"),
            Column("ticks", "int", "how many"),
        ),
        by="slot_start",
    ),
    Dataset(
        "samples",
        "single samples, as long as the store keeps them",
        (
            *(_HOST, _HISTORY, _CARD),
            Column("at", "time", "when it was taken, by the host's clock"),
            Column("status", "text", "of the tick: ok, partial, error or unresponsive"),
            *(_STATE, _REASON, _RULE),
            Column("util_pct", "int", "utilisation, 0 to 100"),
            Column("util_max_pct", "int", "the highest within the interval"),
            Column("memory_used_mb", "int", "memory in use"),
            Column("held_mb", "int", "held by listed compute and MPS processes"),
            Column("unattributed_mb", "int", "in use and held by no listed process"),
            Column("holders", "int", "compute and MPS processes on the card"),
            Column("temperature_c", "int", "temperature"),
            Column("power_w", "float", "power"),
            Column("energy_j", "int", "energy since the sample before, by the card's own counter"),
        ),
        by="at",
    ),
    Dataset(
        "holds",
        "processes on cards, each with the sums of its life, in the day in which it began",
        (
            *(_HOST, _HISTORY, _CARD, *_USER),
            Column("process", "text", "the process's short name"),
            Column("pid", "int", "its number"),
            Column("type", "text", "compute, mps or graphics"),
            Column("since", "time", "when it was first seen on the card"),
            Column("until", "time", "until when it was seen"),
            Column("is_open", "bool", "whether it was still there when the host was pulled last"),
            Column("memory_mb", "int", "memory held at last"),
            Column("active_s", "float", "card time in that state, over its life"),
            Column("idle_held_s", "float", "the same"),
            Column("truly_idle_s", "float", "the same"),
            Column("unknown_s", "float", "the same"),
            Column("idle_long_s", "float", "in long idle-held stretches"),
            Column("sm_util_pct", "float", "its own mean use of the card's multiprocessors"),
        ),
        by="since",
    ),
    Dataset(
        "cards",
        "every card of every history",
        (
            *(_HOST, _HISTORY, _CARD),
            Column("index", "int", "for display; it changes"),
            Column("name", "text", "the model"),
            Column("memory_total_mb", "int", "its memory"),
            Column("mig_parent_uuid", "text", "of a MIG instance: the card that it is a part of"),
            Column("mig_profile", "text", "of a MIG instance: its profile"),
            Column("first_seen", "time", "from then on it is expected"),
            Column("retired_at", "time", "from then on it is not"),
        ),
    ),
    Dataset(
        "hosts",
        "whose history there is; a host that was installed anew has several",
        (
            *(_HOST, _HISTORY),
            Column("store_id", "text", "of the host's database"),
            Column("branch", "int", "how often that went back to an older copy of itself"),
            Column("machine_id", "text", "of the machine"),
            Column("agent_version", "text", "at the last pull"),
            Column("pulled_at", "time", "when it was pulled last, by the controller's clock"),
            Column("raw_since", "time", "single samples of before are gone"),
            Column("is_present", "bool", "whether it is the one that the host goes on with"),
        ),
    ),
    Dataset(
        "rules",
        "the thresholds that states were judged by",
        (
            *(_HOST, _HISTORY),
            Column("rule", "int", "its number in this history"),
            Column("active_util_pct", "int", "active from so much utilisation on"),
            Column("held_mb", "int", "below it, idle-held where processes hold more than this"),
            Column("unattributed_mb", "int", "or where more than this is in use that no listed process holds"),
            Column("unattributed_v1_mb", "int", "the same where the driver has only the old memory reading"),
            Column("long_idle_s", "int", "an idle-held stretch is long from so much on"),
        ),
    ),
    Dataset(
        "pauses",
        "when a host was told not to look",
        (*(_HOST, _HISTORY), Column("since", "time", "its begin"), Column("until", "time", "its end; empty: none yet")),
    ),
)
