"""The folder of an export: a file for each data set and day, and a manifest that says what is whole.

The manifest is written last and taken away first: where there is one, every file it names is there and is what it
says. A file that would be the same again is left as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gua.errors import UsageError
from gua.units import to_iso
from gua_fleet.export.datasets import DATASETS, VERSION, Dataset
from gua_fleet.export.files import Form
from gua_fleet.export.source import DAY_MS, Row, Source
from gua_fleet.write_file import write_atomically

SCHEMA = "gua.fleet-export/1"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Written:
    """files: in the export. new: of them, how many were not there before. rows: in all of them."""

    files: int
    new: int
    rows: int


def write_export(source: Source, form: Form, folder: Path, about: Mapping[str, Any]) -> Written:
    """Write everything into the folder, which is made. about: further keys of the manifest.

    The same store gives the same files. Files of an earlier export that are none of this one go. Raises UsageError for
    a folder that holds something else, StoreUnusable, and OSError.
    """
    before = _begin(folder)
    files: dict[str, dict[str, Any]] = {}
    for dataset in DATASETS:
        for name, batches in _pieces(source, dataset, form):
            files[name] = _write(folder / name, form, dataset, batches)
    source.check_unchanged()
    for name in before.keys() - files.keys():
        _remove(folder, name)
    new = sum(before.get(name, {}).get("sha256") != one["sha256"] for name, one in files.items())
    rows = sum(one["rows"] for one in files.values())
    _write_manifest(folder, form, about, files)
    return Written(len(files), new, rows)


def _pieces(source: Source, dataset: Dataset, form: Form) -> Iterator[tuple[str, Iterator[list[Row]]]]:
    """(the file's name, its rows) of a data set, one file at a time."""
    if not dataset.daily:
        yield f"{dataset.name}/part-0.{form.suffix}", source.whole(dataset.name)
        return
    for day in source.days(dataset.name):
        yield f"{dataset.name}/day={_day_text(day)}/part-0.{form.suffix}", source.daily(dataset.name, day)


def _day_text(day: int) -> str:
    return to_iso(day * DAY_MS)[:10]


def _begin(folder: Path) -> dict[str, dict[str, Any]]:
    """The files of the export that is there, which is not whole any more from now on."""
    folder.mkdir(parents=True, exist_ok=True)
    for dataset in DATASETS:  # what a killed run left half written
        for left in folder.glob(f"{dataset.name}/**/.*.new"):
            left.unlink()
    manifest = folder / MANIFEST
    kept = folder / f".{MANIFEST}.before"
    if manifest.exists():
        os.replace(manifest, kept)
    elif not kept.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder}: is not empty and no export: name another folder")
    if not kept.exists():
        return {}
    try:
        found = json.loads(kept.read_bytes())
        files = found.get("files", []) if found.get("schema") == SCHEMA else None
        if files is None:
            raise UsageError(f"{folder}: its {MANIFEST} is not of such an export: name another folder")
        return {one["name"]: one for one in files}
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise UsageError(f"{folder}: its {MANIFEST} cannot be read: name another folder") from exc


def _write(path: Path, form: Form, dataset: Dataset, batches: Iterator[list[Row]]) -> dict[str, Any]:
    """The file, whole or not at all; one that is the same already stays. Gives its part of the manifest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")
    os.close(handle)
    beside = Path(name)
    try:
        rows = form.write(beside, dataset, batches)
        size, digest = _digest(beside)
        if not path.exists() or _digest(path) != (size, digest):
            _finish(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
    return {"rows": rows, "bytes": size, "sha256": digest}


def _finish(beside: Path, path: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    with beside.open("rb+") as file:
        os.fchmod(file.fileno(), 0o666 & ~umask)
        os.fsync(file.fileno())
    os.replace(beside, path)


def _digest(path: Path) -> tuple[int, str]:
    found, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            found.update(part)
            size += len(part)
    return size, found.hexdigest()


def _remove(folder: Path, name: str) -> None:
    """A file of the export before. Its name came from a file that anybody may have written."""
    path = folder / name
    if ".." in path.parts or not path.resolve().is_relative_to(folder.resolve()):
        return
    with contextlib.suppress(OSError):
        path.unlink()
        path.parent.rmdir()


def _write_manifest(folder: Path, form: Form, about: Mapping[str, Any], files: Mapping[str, Mapping[str, Any]]) -> None:
    days = sorted(part[4:] for name in files for part in name.split("/") if part.startswith("day="))
    manifest = {
        "schema": SCHEMA,
        "version": VERSION,
        "form": form.suffix,
        **about,
        "window": {"first_day": days[0], "last_day": days[-1]} if days else None,
        "datasets": [_described(dataset, files) for dataset in DATASETS],
        "files": [{"name": name, **files[name]} for name in sorted(files)],
    }
    write_atomically(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode("ascii"))
    with contextlib.suppress(FileNotFoundError):
        (folder / f".{MANIFEST}.before").unlink()


def _described(dataset: Dataset, files: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "meaning": dataset.meaning,
        "by_day_of": dataset.by,
        "rows": sum(one["rows"] for name, one in files.items() if name.startswith(f"{dataset.name}/")),
        "columns": [vars(column) for column in dataset.columns],
    }
