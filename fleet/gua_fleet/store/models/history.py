"""Which hosts there are, whose history is whose, and what a host's own database says of itself.

A history is one database of one host as we know it. Every other table has `history` as the first part of its key and
goes on with the host's own ids, so that a row put in twice is the same row.
"""

from __future__ import annotations

from peewee import AutoField, CompositeKey, TextField

from gua_fleet.store.models.base import Ms, Number, Row, RowId, Small


class Migration(Row):
    version = Number(primary_key=True)
    applied_ms = Ms()


class Host(Row):
    """A host by its name in the inventory. asked_ms: the last pull; pulled_ms: the last one that went to the end."""

    id = AutoField()
    name = TextField(unique=True)
    asked_ms = Ms()
    pulled_ms = Ms(null=True)
    outcome = TextField()
    detail = TextField(null=True)


class History(Row):
    """One database of one host.

    branch: 0; one more each time that the host went back to an older copy of the database. rev: everything up to this
    revision is here; raw_rev: raw ticks too. anchor_rev, anchor_ms: the newest pulled tick and its time, by which a
    restored copy is told. raw_since_ms: raw ticks are here without gaps from then on; None: from the beginning.
    users_since_slot: in slots before it the host names nobody. clock_ahead_ms: the host's clock against ours, when it
    was asked last. ended_ms: when another history took its place, and ended_why; None: it is the host's present one.
    began_ms, pulled_ms, ended_ms: by this machine's clock.
    """

    id = AutoField()
    host = Number(index=True)
    store_id = TextField(index=True)
    branch = Number()
    machine_id = TextField()
    boot_id = TextField()
    hostname = TextField()
    agent_version = TextField()
    rev = Ms()
    raw_rev = Ms()
    anchor_rev = Ms(null=True)
    anchor_ms = Ms(null=True)
    raw_since_ms = Ms(null=True)
    users_since_slot = Number()
    clock_ahead_ms = Ms()
    began_ms = Ms()
    pulled_ms = Ms()
    ended_ms = Ms(null=True)
    ended_why = TextField(null=True)

    class Meta:
        indexes = ((("host", "store_id", "branch"), True),)


class Superseded(Row):
    """A slot in which this history does not count, because a later history of the same host has ticks there."""

    history = Number()
    slot = Number()

    class Meta:
        primary_key = CompositeKey("history", "slot")


class Boot(Row):
    history = Number()
    id = RowId()
    boot_id = TextField()

    class Meta:
        primary_key = CompositeKey("history", "id")


class Rule(Row):
    history = Number()
    id = RowId()
    active_util_pct = Number()
    held_mb = Number()
    unattributed_mb = Number()
    unattributed_v1_mb = Number()
    long_idle_s = Number()
    rev = Ms()

    class Meta:
        primary_key = CompositeKey("history", "id")


class Run(Row):
    history = Number()
    id = RowId()
    store = RowId()
    boot = RowId()
    rule = RowId()
    kind = TextField()
    hostname = TextField()
    interval_ms = Ms()
    agent_version = TextField()
    driver_version = TextField(null=True)
    started_ms = Ms()
    ended_ms = Ms(null=True)
    rev = Ms()

    class Meta:
        primary_key = CompositeKey("history", "id")


class Device(Row):
    history = Number()
    id = Number()
    uuid = TextField(index=True)
    card_index = Number(null=True)
    pci_bus_id = TextField(null=True)
    name = TextField(null=True)
    memory_total_mb = Number(null=True)
    mig_parent_uuid = TextField(null=True)
    mig_profile = TextField(null=True)
    first_seen_ms = Ms()
    retired_at_ms = Ms(null=True)
    rev = Ms()

    class Meta:
        primary_key = CompositeKey("history", "id")


class Pause(Row):
    history = Number()
    id = RowId()
    run = RowId()
    from_ms = Ms()
    until_ms = Ms(null=True)
    rev = Ms()

    class Meta:
        primary_key = CompositeKey("history", "id")


class IdleStretch(Row):
    """An unbroken idle-held stretch of one card that is long."""

    history = Number()
    id = RowId()
    device = Number()
    rule = RowId()
    is_open = Small()
    is_long = Small()
    first_tick = RowId()
    last_tick = RowId()
    start_ms = Ms()
    end_ms = Ms()
    rev = Ms()

    class Meta:
        primary_key = CompositeKey("history", "id")
