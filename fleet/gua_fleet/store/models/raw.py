"""Raw ticks: when the host looked, and what each card showed. Kept for the raw retention."""

from __future__ import annotations

from peewee import CompositeKey, TextField

from gua_fleet.store.models.base import Ms, Number, Row, RowId, Small


class Tick(Row):
    """cover_from, cover_until: the first fragment it covers, in ms after ts_ms; further ones in TickFragment."""

    history = Number()
    id = RowId()
    ts_ms = Ms()
    run = RowId()
    status = Small()
    cover_ms = Ms()
    cover_from = Ms()
    cover_until = Ms()
    fault = TextField(null=True)
    rev = Ms()

    class Meta:
        by_key = True
        primary_key = CompositeKey("history", "id")
        indexes = ((("history", "ts_ms"), False),)


class TickFragment(Row):
    history = Number()
    tick = RowId()
    from_ms = Ms()
    until_ms = Ms()

    class Meta:
        by_key = True
        primary_key = CompositeKey("history", "tick", "from_ms")


class Occupancy(Row):
    """What many samples of one card have in common."""

    history = Number()
    id = RowId()
    first_tick = RowId()
    rule = RowId()
    flags = Small()
    memory_used_mb = Number(null=True)
    holders = Number(null=True)
    held_mb = Number()
    unattributed_mb = Number(null=True)

    class Meta:
        by_key = True
        primary_key = CompositeKey("history", "id")


class Sample(Row):
    """One card at one tick. power_dw: tenths of a watt. energy_j: by the card's own counter since its tick before."""

    history = Number()
    tick = RowId()
    device = Number()
    occupancy = RowId()
    verdict = Small()
    util_source = Small(null=True)
    util_pct = Small(null=True)
    util_max_pct = Small(null=True)
    temperature_c = Small(null=True)
    power_dw = Number(null=True)
    energy_j = Ms(null=True)

    class Meta:
        by_key = True
        primary_key = CompositeKey("history", "tick", "device")
