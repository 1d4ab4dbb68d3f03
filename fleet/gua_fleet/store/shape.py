"""A chunk of a host's export as rows of our tables, and what of it is not believed. Pure.

A host may lie or be broken. What it says must fit the columns, lie in the revisions that the chunk is of, and add up to
no more time than there is. A table or column that we do not know is left alone: a newer agent may say more.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from peewee import TextField

from gua.coverage import SLOT_MS
from gua.store.codes import PROCESS_TYPES, STATES, STATUSES, USER_SOURCES, UTIL_SOURCES, VERDICTS
from gua.store.sample_id import DEVICE_BITS
from gua_fleet.store.models import PULLED, RAW
from gua_fleet.store.models.base import Number, Row, Small

Column = Sequence[Any]

# The export's names where ours are others.
_TABLES = {"person": "user"}
_COLUMNS = {("process", "person"): "user", ("user_slot", "person"): "user", ("sample", "tick"): "id"}
# Rows that never change: put in once.
_CONSTANT = frozenset({"boot", "tick_fragment", "occupancy", "sample"})

_WIDTHS = {Small: "h", Number: "i"}
_MOST = 1 << 53
# Of a time or a length of time, in milliseconds: a date of a year with four digits, which can be written.
_MOST_MS = 1 << 47
_SPANS = frozenset({"cover_from", "cover_until"})
_TEXT_LIMIT = 10_000
# No slot of one card holds more: milliseconds; 100 kW for a slot in millijoules; a tick a millisecond.
_SLOT_LIMITS = {
    "covered_ms": SLOT_MS,
    "energy_ms": SLOT_MS,
    "share_ms": SLOT_MS,
    "energy_mj": 100_000 * SLOT_MS,
    "samples": SLOT_MS,
    "ticks": SLOT_MS,
    "card_ms": 10_000 * SLOT_MS,  # of `(expired)`, who may be many
    "shared_ms": 10_000 * SLOT_MS,
    "long_idle_ms": 10_000 * SLOT_MS,
}
# Codes that we know words for: with any other one, nothing could be said of the row.
_CODES = {
    "verdict": frozenset(range(len(VERDICTS))),
    "state": frozenset(range(len(STATES))),
    "status": frozenset(range(len(STATUSES))),
    "type": frozenset(range(len(PROCESS_TYPES))),
    "source": frozenset(range(len(USER_SOURCES))),
    "util_source": frozenset(range(len(UTIL_SOURCES))),
}


class NotBelieved(ValueError):
    """What a host says cannot be. One line, without the host's name."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table that is filled from exports. columns: ours, without `history`, in the model's order; key: of them."""

    name: str
    exported: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    fields: Mapping[str, Any]
    raw: bool

    @property
    def has_rev(self) -> bool:
        return "rev" in self.fields

    @property
    def constant(self) -> bool:
        """Whether its rows never change."""
        return self.name in _CONSTANT

    def exported_column(self, column: str) -> str:
        return _COLUMNS.get((self.name, column), column)


def _table(model: type[Row]) -> Table:
    meta: Any = model._meta  # peewee's way to ask a model about itself
    fields = {name: field for name, field in meta.fields.items() if name != "history"}
    key = tuple(name for name in meta.primary_key.field_names if name != "history")
    name = meta.table_name
    return Table(name, _TABLES.get(name, name), tuple(fields), key, fields, model in RAW)


TABLES: tuple[Table, ...] = tuple(map(_table, PULLED))
_WANTED = {(table.exported, table.exported_column(column)) for table in TABLES for column in table.columns} | {
    ("user", "name")
}


def is_wanted(table: str, column: str) -> bool:
    """Whether this column of an export is kept here."""
    return (table, column) in _WANTED


@dataclass(frozen=True)
class Incoming:
    """Rows to put in. columns: in the order of table.columns, each with `rows` values."""

    table: Table
    columns: tuple[Column, ...]
    rows: int

    def column(self, name: str) -> Column:
        return self.columns[self.table.columns.index(name)]


def believed(tables: Mapping[str, Mapping[str, list[Any]]], revs: tuple[int, int]) -> tuple[Incoming, ...]:
    """The chunk's rows, in the order of TABLES. tables: by the export's names. revs: (after, until).

    Raises NotBelieved.
    """
    return tuple(
        _believed(table, tables[table.exported], revs)
        for table in TABLES
        if table.exported in tables and any(tables[table.exported].values())
    )


def _believed(table: Table, exported: Mapping[str, list[Any]], revs: tuple[int, int]) -> Incoming:
    count = len(next(iter(exported.values())))
    columns = []
    for name, field in table.fields.items():
        values = exported.get(table.exported_column(name))
        if values is None:
            if not field.null:
                raise NotBelieved(f"its {table.exported} rows have no {table.exported_column(name)}: upgrade the agent")
            values = [None] * count
        if (table.name, name) == ("sample", "tick"):
            values = [number >> DEVICE_BITS for number in _numbers(table, name, field, values)]
        elif isinstance(field, TextField):
            values = _texts(table, name, field, values)
        else:
            _numbers(table, name, field, values)
        columns.append(values)
    incoming = Incoming(table, tuple(columns), count)
    _check_revs(incoming, revs)
    _check_keys(incoming)
    if table.name.endswith("_slot"):
        _check_slots(incoming)
    return incoming


def _numbers(table: Table, name: str, field: Any, values: list[Any]) -> list[Any]:
    present = values
    if field.null and None in values:
        present = [value for value in values if value is not None]
    try:  # one look at every value, in C: is it a whole number, and does it fit
        array(_WIDTHS.get(type(field), "q"), present)
    except (TypeError, OverflowError) as exc:
        raise NotBelieved(f"a {table.exported} row of it has a {name} that cannot be") from exc
    if name in _CODES and not set(present) <= _CODES[name]:
        raise NotBelieved(f"a {table.exported} row of it has a {name} that is not known here: upgrade gua-fleet")
    wide = present if type(field) not in _WIDTHS and table.name != "sample" else ()
    least, most = (0, _MOST_MS) if name.endswith("_ms") or name in _SPANS else (-_MOST, _MOST)
    if wide and not least <= min(wide) <= max(wide) <= most:
        raise NotBelieved(f"a {table.exported} row of it has a {name} that cannot be")
    return values


def _texts(table: Table, name: str, field: Any, values: list[Any]) -> list[Any]:
    """Few are different from each other."""
    try:
        distinct = set(values)
    except TypeError as exc:  # a list or an object
        raise NotBelieved(f"a {table.exported} row of it has a {name} that cannot be") from exc
    fit = {value: _text(table, name, field, value) for value in distinct}
    return [fit[value] for value in values]


def _text(table: Table, name: str, field: Any, value: Any) -> str | None:
    """PostgreSQL takes no NUL and no half of a surrogate pair."""
    if value is None and field.null:
        return None
    if not isinstance(value, str) or len(value) > _TEXT_LIMIT:
        raise NotBelieved(f"a {table.exported} row of it has a {name} that cannot be")
    return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


def _check_revs(incoming: Incoming, revs: tuple[int, int]) -> None:
    if incoming.table.has_rev:
        found = incoming.column("rev")
        if min(found) <= revs[0] or max(found) > revs[1]:
            raise NotBelieved(f"its {incoming.table.exported} rows are of other revisions than it says")


def _check_keys(incoming: Incoming) -> None:
    if incoming.table.name == "sample":  # a second row of one key is left out when it is put in, which is cheaper
        return
    keys = list(zip(*map(incoming.column, incoming.table.key), strict=True))
    if len(set(keys)) != len(keys):
        raise NotBelieved(f"it says a {incoming.table.exported} row twice")


def _check_slots(incoming: Incoming) -> None:
    for name, most in (("slot", _MOST_MS // SLOT_MS), *_SLOT_LIMITS.items()):
        if name in incoming.table.fields:
            values = incoming.column(name)
            if min(values) < 0 or max(values) > most:
                raise NotBelieved(f"its sums of a quarter-hour ({name}) are more than there can be")
