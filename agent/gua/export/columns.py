"""A table's rows as columns, and back. Pure.

A column is `{"same": VALUE}` where all rows agree, `{"steps": [...]}` where the differences between rows are shorter to
write than the whole numbers themselves (the first one is the value), or the plain list of its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import sub
from typing import Any, Union, cast

Value = Union[int, float, str, None]
Column = Union[list[Value], dict[str, Any]]

# Values that tell which way to write a column is shorter: writing all of it both ways was a third of an export's time.
_JUDGED_BY = 1_000


def pack_column(values: Sequence[Value]) -> Column:
    """values: at least one."""
    kinds = set(map(type, values))
    if len(kinds) == 1 and values.count(values[0]) == len(values):
        return {"same": values[0]}
    if kinds == {int}:
        numbers = cast("Sequence[int]", values)
        first = numbers[:_JUDGED_BY]
        if len(str(_steps(first))) < len(str(list(first))):
            return {"steps": _steps(numbers)}
    return list(values)


def _steps(numbers: Sequence[int]) -> list[int]:
    return [numbers[0], *map(sub, numbers[1:], numbers)]


def unpack_column(column: Column, rows: int) -> list[Value]:
    """The values again. Raises ValueError when they are not as many as `rows`, or no column at all."""
    if isinstance(column, list):
        values = column
    elif not isinstance(column, dict) or set(column) not in ({"same"}, {"steps"}):
        raise ValueError("a column is a list, or an object with `same` or `steps`")
    elif "same" in column:
        return [column["same"]] * rows
    else:
        steps = column["steps"]
        if not isinstance(steps, list) or not set(map(type, steps)) <= {int}:
            raise ValueError("steps are whole numbers")
        values = list(accumulate(steps))
    if len(values) != rows:
        raise ValueError(f"a column has {len(values)} values, and its table {rows} rows")
    return values
