"""The tables. Times are Unix UTC milliseconds, durations milliseconds, words codes of gua.store.codes.

The same on SQLite and PostgreSQL. There are no foreign keys: a host's rows come in the order in which they changed.
"""

from __future__ import annotations

from gua_fleet.store.models.base import Row
from gua_fleet.store.models.history import (
    Boot,
    Device,
    History,
    Host,
    IdleStretch,
    Migration,
    Pause,
    Rule,
    Run,
    Superseded,
)
from gua_fleet.store.models.people import Forgotten, Hold, HoldMemory, Person, Process
from gua_fleet.store.models.raw import Occupancy, Sample, Tick, TickFragment
from gua_fleet.store.models.sums import CardDay, CardSlot, SlotDay, TickDay, TickSlot, UserDay, UserSlot

# Filled from exports, in the order in which an export has them.
PULLED: tuple[type[Row], ...] = (
    Boot,
    Rule,
    Run,
    Device,
    Pause,
    Person,
    Process,
    Hold,
    IdleStretch,
    CardSlot,
    UserSlot,
    TickSlot,
    Tick,
    TickFragment,
    Occupancy,
    Sample,
    HoldMemory,
)
RAW: tuple[type[Row], ...] = (Tick, TickFragment, Occupancy, Sample, HoldMemory)
# Made here from what was pulled.
MADE: tuple[type[Row], ...] = (Superseded, CardDay, UserDay, TickDay, SlotDay)
# Everything that belongs to one history and goes with it.
OF_HISTORY: tuple[type[Row], ...] = (*PULLED, *MADE)
MODELS: tuple[type[Row], ...] = (Host, History, Forgotten, *OF_HISTORY)

__all__ = ["MADE", "MODELS", "OF_HISTORY", "PULLED", "RAW", "Migration"]
