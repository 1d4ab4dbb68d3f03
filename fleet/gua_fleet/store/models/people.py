"""Who held which card. A user is a `person` here: in PostgreSQL a column called user is the name of who asks."""

from __future__ import annotations

from peewee import CompositeKey, TextField

from gua_fleet.store.models.base import Ms, Number, Row, RowId, Small


class Person(Row):
    """A user of the host."""

    history = Number()
    id = RowId()
    name = TextField(index=True)
    source = Small()
    uid = Ms(null=True)
    rev = Ms()

    class Meta:
        primary_key = CompositeKey("history", "id")


class Forgotten(Row):
    """A name that is not to be kept, by its digest: see gua_fleet.store.forgotten. forgotten_ms: when it was asked."""

    digest = TextField(primary_key=True)
    forgotten_ms = Ms()


class Process(Row):
    history = Number()
    id = RowId()
    boot = RowId()
    pid = Ms()
    start_ticks = Ms(null=True)
    person = RowId()
    name = TextField()
    source = Small()
    owner_uid = Ms(null=True)
    login_uid = Ms(null=True)
    container_id = TextField(null=True)
    slurm_job = TextField(null=True)
    mount_hint = TextField(null=True)
    rev = Ms()

    class Meta:
        primary_key = CompositeKey("history", "id")
        indexes = ((("history", "person"), False),)


class Hold(Row):
    """One process on one card. is_open: it held when the host was asked last. until_ms: as far as ticks covered it."""

    history = Number()
    id = RowId()
    process = RowId()
    device = Number()
    type = Small()
    is_open = Small()
    first_tick = RowId()
    last_tick = RowId()
    since_ms = Ms()
    until_ms = Ms()
    memory_mb = Number(null=True)
    active_ms = Ms()
    idle_held_ms = Ms()
    truly_idle_ms = Ms()
    unknown_ms = Ms()
    long_idle_ms = Ms()
    sm_util_ms = Ms()
    sm_util_pct_ms = Ms()
    rev = Ms()

    class Meta:
        primary_key = CompositeKey("history", "id")
        indexes = ((("history", "until_ms"), False), (("history", "last_tick"), False))


class HoldMemory(Row):
    """Held memory from this tick on, until the next row of the same hold. Raw: kept as long as ticks are."""

    history = Number()
    hold = RowId()
    tick = RowId()
    memory_mb = Number(null=True)
    rev = Ms()

    class Meta:
        by_key = True
        primary_key = CompositeKey("history", "hold", "tick")
