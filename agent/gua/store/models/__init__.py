"""The tables. Times are Unix UTC milliseconds, durations milliseconds, keys integers, words codes (codes.py).

Every exportable row carries `rev`, the number of the transaction that last wrote it; sample, occupancy and
tick_fragment have that of their tick. There are no foreign keys: one writer makes all ids, and checking 100 of them
each tick costs more than the tick. Tables with a composite key are kept in its order, which spares the hidden rowid.
"""

from __future__ import annotations

from peewee import Model

from gua.store.models.host import Boot, CardNow, Device, Migration, Pause, Rule, Run, Store
from gua.store.models.people import Hold, HoldMemory, Process, User
from gua.store.models.raw import Occupancy, Sample, Tick, TickFragment
from gua.store.models.rollup import CardSlot, IdleStretch, TickSlot, UserSlot

MODELS: tuple[type[Model], ...] = (
    Store,
    Boot,
    Rule,
    Run,
    Pause,
    Tick,
    TickFragment,
    Device,
    CardNow,
    Sample,
    Occupancy,
    User,
    Process,
    Hold,
    HoldMemory,
    IdleStretch,
    CardSlot,
    UserSlot,
    TickSlot,
)

__all__ = ["MODELS", "Migration"]
