"""Sums in slots of 15 minutes as the host made them, and sums of whole UTC days made from them here, for speed.

A slot or day is its number since 1970 began, UTC. Days leave out superseded slots and are recomputed, in the same
transaction, whenever one of their slots changes.
"""

from __future__ import annotations

from peewee import BlobField, CompositeKey

from gua_fleet.store.models.base import Ms, Number, Row, RowId, Small


class CardSlot(Row):
    history = Number()
    slot = Number()
    device = Number()
    rule = RowId()
    verdict = Small()
    covered_ms = Ms()
    samples = Number()
    energy_mj = Ms()
    energy_ms = Ms()
    rev = Ms()

    class Meta:
        by_key = True
        primary_key = CompositeKey("history", "slot", "device", "rule", "verdict")


class UserSlot(Row):
    history = Number()
    slot = Number()
    person = RowId()
    device = Number()
    rule = RowId()
    state = Small()
    card_ms = Ms()
    share_ms = Ms()
    shared_ms = Ms()
    long_idle_ms = Ms()
    energy_mj = Ms()
    energy_ms = Ms()
    samples = Number()
    rev = Ms()

    class Meta:
        by_key = True
        primary_key = CompositeKey("history", "slot", "person", "device", "rule", "state")


class TickSlot(Row):
    """Ticks by the slot they began in. cover_ms: the time each might have covered."""

    history = Number()
    slot = Number()
    status = Small()
    cover_ms = Ms()
    ticks = Number()
    rev = Ms()

    class Meta:
        by_key = True
        primary_key = CompositeKey("history", "slot", "status", "cover_ms")


class CardDay(Row):
    history = Number()
    day = Number()
    device = Number()
    rule = RowId()
    verdict = Small()
    covered_ms = Ms()
    samples = Number()
    energy_mj = Ms()
    energy_ms = Ms()

    class Meta:
        by_key = True
        primary_key = CompositeKey("history", "day", "device", "rule", "verdict")


class UserDay(Row):
    history = Number()
    day = Number()
    person = RowId()
    device = Number()
    rule = RowId()
    state = Small()
    card_ms = Ms()
    share_ms = Ms()
    shared_ms = Ms()
    long_idle_ms = Ms()
    energy_mj = Ms()
    energy_ms = Ms()
    samples = Number()

    class Meta:
        by_key = True
        primary_key = CompositeKey("history", "day", "person", "device", "rule", "state")


class TickDay(Row):
    history = Number()
    day = Number()
    status = Small()
    cover_ms = Ms()
    ticks = Number()

    class Meta:
        by_key = True
        primary_key = CompositeKey("history", "day", "status", "cover_ms")


class SlotDay(Row):
    """A day's covered ms of all cards: 96 slots by 4 states (slot first, states as in gua.store.codes.STATES), each 8
    bytes, little-endian. A hundred hosts' hours of the week are read in a tenth of the time that rows would take.
    """

    history = Number()
    day = Number()
    state_ms = BlobField()

    class Meta:
        primary_key = CompositeKey("history", "day")
