"""The host, its stores and runs, its cards, and what the store itself has to know."""

from __future__ import annotations

from peewee import SQL, AutoField, IntegerField, TextField

from gua.store.models.base import Row


class Migration(Row):
    version = IntegerField(primary_key=True)
    applied_ms = IntegerField()


class Store(Row):
    """The one store in force is the newest row. rev counts write transactions; longest_cover_ms bounds searches."""

    id = AutoField()
    store_id = TextField()
    machine_id = TextField()
    created_ms = IntegerField()
    rev = IntegerField()
    longest_cover_ms = IntegerField()
    raw_since_ms = IntegerField(null=True)  # raw ticks before it are gone; None: none were ever removed
    users_since_slot = IntegerField(constraints=[SQL("DEFAULT 0")])  # in slots before it no user is named any more


class Boot(Row):
    id = AutoField()
    boot_id = TextField(unique=True)


class Rule(Row):
    id = AutoField()
    active_util_pct = IntegerField()
    held_mb = IntegerField()
    unattributed_mb = IntegerField()
    unattributed_v1_mb = IntegerField()
    long_idle_s = IntegerField()
    rev = IntegerField()


class Run(Row):
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


class Device(Row):
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


class CardNow(Row):
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


class Pause(Row):
    """Time in which somebody told the agent not to look. until_ms None: its end is not known."""

    id = AutoField()
    run = IntegerField()
    from_ms = IntegerField()
    until_ms = IntegerField(null=True)
    rev = IntegerField()
