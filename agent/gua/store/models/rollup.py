"""Sums in slots of 15 minutes, kept for ever, and the stretches that decide what is long idle-held."""

from __future__ import annotations

from peewee import AutoField, BooleanField, CompositeKey, IntegerField

from gua.store.models.base import Row


class IdleStretch(Row):
    """An unbroken idle-held stretch of one card. Short ones go when they end; long ones stay."""

    id = AutoField()
    device = IntegerField()
    rule = IntegerField()
    is_open = BooleanField()
    is_long = BooleanField()
    first_tick = IntegerField()
    last_tick = IntegerField()
    start_ms = IntegerField()
    end_ms = IntegerField()
    rev = IntegerField()


class CardSlot(Row):
    slot = IntegerField()
    device = IntegerField()
    rule = IntegerField()
    verdict = IntegerField()
    covered_ms = IntegerField()
    samples = IntegerField()
    energy_mj = IntegerField()
    energy_ms = IntegerField()  # covered time whose energy is known
    rev = IntegerField()

    class Meta:
        without_rowid = True
        primary_key = CompositeKey("slot", "device", "rule", "verdict")


class UserSlot(Row):
    slot = IntegerField()
    user = IntegerField()
    device = IntegerField()
    rule = IntegerField()
    state = IntegerField()
    card_ms = IntegerField()
    share_ms = IntegerField()
    shared_ms = IntegerField()
    long_idle_ms = IntegerField()
    energy_mj = IntegerField()
    energy_ms = IntegerField()
    samples = IntegerField()
    rev = IntegerField()

    class Meta:
        without_rowid = True
        primary_key = CompositeKey("slot", "user", "device", "rule", "state")


class TickSlot(Row):
    """Ticks by the slot they began in, so that their count and intervals need no raw ticks."""

    slot = IntegerField()
    status = IntegerField()
    cover_ms = IntegerField()
    ticks = IntegerField()
    rev = IntegerField()

    class Meta:
        without_rowid = True
        primary_key = CompositeKey("slot", "status", "cover_ms")
