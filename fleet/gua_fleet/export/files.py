"""One data set's rows written to one file, in batches: CSV with what Python has, Parquet with pyarrow."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from gua.units import to_iso
from gua_fleet.errors import FleetError
from gua_fleet.export.datasets import Column, Dataset
from gua_fleet.export.source import Row
from gua_fleet.render_csv import csv_cell
from gua_fleet.show import harmless

# Rows in a row group: as many as memory may hold at once.
_GROUP_ROWS = 100_000


class Form(Protocol):
    """A kind of file. suffix: of its name."""

    suffix: str

    def write(self, path: Path, dataset: Dataset, batches: Iterable[list[Row]]) -> int:
        """Write a new file of these rows; gives how many. Raises OSError."""


class Csv:
    """One header; empty is unknown. Times are ISO 8601 in UTC. No text is a formula."""

    suffix = "csv"

    def write(self, path: Path, dataset: Dataset, batches: Iterable[list[Row]]) -> int:
        count = 0
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([column.name for column in dataset.columns])
            for rows in batches:
                count += len(rows)
                writer.writerows(_texts(dataset.columns, rows))
        return count


def _texts(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[list[Any]]:
    times = [place for place, column in enumerate(columns) if column.kind == "time"]
    for row in rows:
        cells = [csv_cell(value) for value in row]
        for place in times:
            cells[place] = "" if row[place] is None else to_iso(row[place])
        yield cells


class Parquet:
    """Compressed columns with types; times are UTC timestamps. Raises FleetError where pyarrow is not installed."""

    suffix = "parquet"

    def __init__(self) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as exc:
            raise FleetError("--parquet needs pyarrow: install gua-fleet[parquet], or use --csv") from exc
        self._arrow: Any = pyarrow
        self._parquet: Any = pyarrow.parquet

    def write(self, path: Path, dataset: Dataset, batches: Iterable[list[Row]]) -> int:
        schema, count = self._schema(dataset), 0
        with self._parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            for rows in _regrouped(batches):
                count += len(rows)
                columns = zip(dataset.columns, zip(*rows, strict=True), schema, strict=True)
                arrays = [self._arrow.array(_values(column, values), field.type) for column, values, field in columns]
                writer.write_table(self._arrow.Table.from_arrays(arrays, schema=schema))
            if not count:  # some versions of pyarrow cannot read a file in which nothing was ever written
                writer.write_table(schema.empty_table())
        return count

    def _schema(self, dataset: Dataset) -> Any:
        arrow = self._arrow
        kinds = {
            "text": arrow.string(),
            "int": arrow.int64(),
            "float": arrow.float64(),
            "bool": arrow.bool_(),
            "time": arrow.timestamp("ms", tz="UTC"),
        }
        return arrow.schema(
            [arrow.field(one.name, kinds[one.kind], metadata={"meaning": one.meaning}) for one in dataset.columns]
        )


def _values(column: Column, values: Sequence[Any]) -> list[Any]:
    """As they are, but for what a terminal would take for more than text: CSV has the same."""
    if column.kind != "text":
        return list(values)
    return [None if value is None else harmless(value) for value in values]


def _regrouped(batches: Iterable[list[Row]]) -> Iterator[list[Row]]:
    """Batches put together until they are worth a row group."""
    group: list[Row] = []
    for rows in batches:
        group += rows
        while len(group) >= _GROUP_ROWS:
            yield group[:_GROUP_ROWS]
            group = group[_GROUP_ROWS:]
    if group:
        yield group
