"""Who held which card: users, processes, and the lives of holds."""

from __future__ import annotations

from peewee import SQL, AutoField, BooleanField, CompositeKey, IntegerField, TextField

from gua.store.models.base import Row


class User(Row):
    id = AutoField()
    name = TextField(unique=True)
    source = IntegerField()
    uid = IntegerField(null=True)
    rev = IntegerField()


class Process(Row):
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
    mount_hint = TextField(null=True)

    class Meta:
        indexes = ((("boot", "pid", "start_ticks", "user"), False), (("user",), False))


class Hold(Row):
    """One process on one card, over consecutive ticks that saw it; ticks that could not look are bridged.

    sm_util_ms: covered time for which the share of the card's multiprocessors it used is known; sm_util_pct_ms: that
    time by the percentage, so that the mean is their quotient.
    """

    id = AutoField()
    process = IntegerField(index=True)
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
    sm_util_ms = IntegerField(constraints=[SQL("DEFAULT 0")])
    sm_util_pct_ms = IntegerField(constraints=[SQL("DEFAULT 0")])


class HoldMemory(Row):
    """Held memory from this tick on, until the next row of the same hold."""

    hold = IntegerField()
    tick = IntegerField()
    memory_mb = IntegerField(null=True)
    rev = IntegerField()

    class Meta:
        without_rowid = True
        primary_key = CompositeKey("hold", "tick")
