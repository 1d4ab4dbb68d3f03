"""What all tables have in common."""

from __future__ import annotations

from peewee import Model


class Row(Model):
    class Meta:
        legacy_table_names = False  # snake_case of the class name
