"""Raw ticks: when we looked, and what each card showed. Kept for `store.raw_retention`."""

from __future__ import annotations

from peewee import AutoField, CompositeKey, IntegerField, TextField

from gua.store.models.base import Row


class Tick(Row):
    """cover_from and cover_until: the first fragment it covers, relative to ts_ms; further ones in TickFragment."""

    id = AutoField()
    ts_ms = IntegerField(index=True)
    run = IntegerField()
    status = IntegerField()
    cover_ms = IntegerField()
    cover_from = IntegerField()
    cover_until = IntegerField()
    fault = TextField(null=True)
    rev = IntegerField()


class TickFragment(Row):
    tick = IntegerField()
    from_ms = IntegerField()
    until_ms = IntegerField()

    class Meta:
        without_rowid = True
        primary_key = CompositeKey("tick", "from_ms")


class Sample(Row):
    """Readings of one card-tick; the view gpu_sample shows them and their occupancy as plain columns.

    id: sample_id of tick and device, a fifth smaller than two columns. readings: see packing.py.
    energy_j: by the card's own counter since its previous tick; None at a gap or reset.
    """

    id = IntegerField(primary_key=True)
    occupancy = IntegerField()
    readings = IntegerField()
    energy_j = IntegerField(null=True)


class Occupancy(Row):
    """What one card's samples have in common while its memory, its holders' number and its rule stay the same.

    A card that sits there for hours costs one row instead of the same five figures with each sample. first_tick:
    the tick it was made for; it is used for OCCUPANCY_TICKS ticks at most, so that retention knows when it may go.
    """

    id = AutoField()
    first_tick = IntegerField(index=True)
    rule = IntegerField()
    flags = IntegerField()
    memory_used_mb = IntegerField(null=True)
    holders = IntegerField(null=True)
    held_mb = IntegerField()
    unattributed_mb = IntegerField(null=True)
