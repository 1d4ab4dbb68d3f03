"""A table's rows as columns, and back. Pure.

A column is `{"same": VALUE}` where all rows agree, `{"steps": [...]}` where the differences between rows are shorter to
write than the whole numbers themselves (the first one is the value), or the plain list of its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Union, cast

Value = Union[int, float, str, None]
Column = Union[list[Value], dict[str, Any]]


def pack_column(values: Sequence[Value]) -> Column:
    """values: at least one."""
    if all(value == values[0] and type(value) is type(values[0]) for value in values):
        return {"same": values[0]}
    if all(type(value) is int for value in values):
        numbers = cast("Sequence[int]", values)
        steps = [numbers[0], *(after - before for before, after in zip(numbers, numbers[1:]))]
        if len(str(steps)) < len(str(list(numbers))):
            return {"steps": steps}
    return list(values)


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
        if not isinstance(steps, list) or not all(type(step) is int for step in steps):
            raise ValueError("steps are whole numbers")
        values = list(accumulate(steps))
    if len(values) != rows:
        raise ValueError(f"a column has {len(values)} values, and its table {rows} rows")
    return values
