"""The tables. Times are Unix UTC milliseconds, durations milliseconds, keys integers, words codes (codes.py).

Every exportable row carries `rev`, the number of the transaction that last wrote it; gpu_sample and tick_fragment
have that of their tick. There are no foreign keys: one writer makes all ids, and checking 100 of them each tick
costs more than the tick. Tables with a composite key are kept in its order, which spares the hidden rowid.
"""

from __future__ import annotations

from peewee import (
    AutoField,
    BooleanField,
    CompositeKey,
    IntegerField,
    Model,
    TextField,
)


class _Row(Model):
    class Meta:
        legacy_table_names = False  # snake_case of the class name


class Migration(_Row):
    version = IntegerField(primary_key=True)
    applied_ms = IntegerField()


class Store(_Row):
    """The one store in force is the newest row. rev counts write transactions; longest_cover_ms bounds searches."""

    id = AutoField()
    store_id = TextField()
    machine_id = TextField()
    created_ms = IntegerField()
    rev = IntegerField()
    longest_cover_ms = IntegerField()
    raw_since_ms = IntegerField(null=True)  # raw ticks before it are gone; None: none were ever removed


class Boot(_Row):
    id = AutoField()
    boot_id = TextField(unique=True)


class Rule(_Row):
    id = AutoField()
    active_util_pct = IntegerField()
    held_mb = IntegerField()
    unattributed_mb = IntegerField()
    unattributed_v1_mb = IntegerField()
    long_idle_s = IntegerField()
    rev = IntegerField()


class Run(_Row):
    id = AutoField()
    store = IntegerField()
    boot = IntegerField()
    rule = IntegerField()
    kind = TextField()
    hostname = TextField()
    interval_ms = IntegerField()
    agent_version = TextField()
    driver_version = TextField(null=True)
    started_ms = IntegerField()
    ended_ms = IntegerField(null=True)
    rev = IntegerField()


class Tick(_Row):
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


class TickFragment(_Row):
    tick = IntegerField()
    from_ms = IntegerField()
    until_ms = IntegerField()

    class Meta:
        without_rowid = True
        primary_key = CompositeKey("tick", "from_ms")


class Device(_Row):
    id = AutoField()
    uuid = TextField(unique=True)
    card_index = IntegerField(null=True)
    pci_bus_id = TextField(null=True)
    name = TextField(null=True)
    memory_total_mb = IntegerField(null=True)
    mig_parent_uuid = TextField(null=True)
    mig_profile = TextField(null=True)
    first_seen_ms = IntegerField()
    retired_at_ms = IntegerField(null=True)
    rev = IntegerField()


class CardNow(_Row):
    """The newest tick of each card. since_ms: when its state began, by unbroken ticks. energy_j: its own counter.

    Made anew from what comes, so it is not exported.
    """

    device = IntegerField(primary_key=True)
    tick = IntegerField()
    state = IntegerField()
    since_ms = IntegerField()
    until_ms = IntegerField()
    last_seen_ms = IntegerField(null=True)
    energy_j = IntegerField(null=True)


class GpuSample(_Row):
    """Readings and evidence of one card-tick. id: sample_id of tick and device, a fifth smaller than two columns.

    power_dw: tenths of a watt. energy_j: by the card's own counter since its previous tick; None at a gap or reset.
    """

    id = IntegerField(primary_key=True)
    verdict = IntegerField()
    flags = IntegerField()
    util_pct = IntegerField(null=True)
    memory_used_mb = IntegerField(null=True)
    temperature_c = IntegerField(null=True)
    power_dw = IntegerField(null=True)
    energy_j = IntegerField(null=True)
    holders = IntegerField(null=True)
    held_mb = IntegerField()
    unattributed_mb = IntegerField(null=True)


class User(_Row):
    id = AutoField()
    name = TextField(unique=True)
    source = IntegerField()
    uid = IntegerField(null=True)
    rev = IntegerField()


class Process(_Row):
    """One process as one user's. Named anew when its owner changes, so that nobody inherits another's time."""

    id = AutoField()
    boot = IntegerField()
    pid = IntegerField()
    start_ticks = IntegerField(null=True)
    user = IntegerField()
    name = TextField()
    source = IntegerField()
    owner_uid = IntegerField(null=True)
    login_uid = IntegerField(null=True)
    container_id = TextField(null=True)
    slurm_job = TextField(null=True)
    rev = IntegerField()

    class Meta:
        indexes = ((("boot", "pid", "start_ticks", "user"), False),)


class Hold(_Row):
    """One process on one card, over consecutive ticks that saw it; ticks that could not look are bridged."""

    id = AutoField()
    process = IntegerField()
    device = IntegerField()
    type = IntegerField()
    is_open = BooleanField()
    first_tick = IntegerField()
    last_tick = IntegerField()
    since_ms = IntegerField()
    until_ms = IntegerField()
    memory_mb = IntegerField(null=True)
    active_ms = IntegerField()
    idle_held_ms = IntegerField()
    truly_idle_ms = IntegerField()
    unknown_ms = IntegerField()
    long_idle_ms = IntegerField()
    rev = IntegerField()


class HoldMemory(_Row):
    """Held memory from this tick on, until the next row of the same hold."""

    hold = IntegerField()
    tick = IntegerField()
    memory_mb = IntegerField(null=True)
    rev = IntegerField()

    class Meta:
        without_rowid = True
        primary_key = CompositeKey("hold", "tick")


class IdleStretch(_Row):
    """An unbroken idle-held stretch of one card. Short ones go when they end; long ones stay with the raw ticks."""

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


class CardSlot(_Row):
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


class UserSlot(_Row):
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


class TickSlot(_Row):
    """Ticks by the slot they began in, so that their count and intervals need no raw ticks."""

    slot = IntegerField()
    status = IntegerField()
    cover_ms = IntegerField()
    ticks = IntegerField()
    rev = IntegerField()

    class Meta:
        without_rowid = True
        primary_key = CompositeKey("slot", "status", "cover_ms")


MODELS: tuple[type[Model], ...] = (
    Store,
    Boot,
    Rule,
    Run,
    Tick,
    TickFragment,
    Device,
    CardNow,
    GpuSample,
    User,
    Process,
    Hold,
    HoldMemory,
    IdleStretch,
    CardSlot,
    UserSlot,
    TickSlot,
)
