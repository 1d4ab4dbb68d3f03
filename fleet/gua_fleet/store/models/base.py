"""What all tables have in common, and the widths of their numbers, which are also what is believed of a host."""

from __future__ import annotations

from peewee import BigIntegerField, IntegerField, Model, SmallIntegerField

__all__ = ["Ms", "Number", "Row", "RowId", "Small"]


class Row(Model):
    """by_key: in SQLite its rows lie in the order of their key, which spares the hidden rowid."""

    class Meta:
        by_key = False
        legacy_table_names = False  # snake_case of the class name


class Small(SmallIntegerField):
    """A code, a flag (0 or 1), a percentage: 16 bits."""


class Number(IntegerField):
    """A count, MiB, a device's id, a slot: 32 bits."""


class RowId(BigIntegerField):
    """An id that the host gave; below zero: of imported history. 64 bits."""


class Ms(BigIntegerField):
    """Milliseconds (Unix UTC where it is a time), millijoules, revisions: 64 bits."""
