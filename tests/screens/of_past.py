"""Screens of docs/fleet-past.md; see tests.screens."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gua.location import Location
from gua.report.build import build_report
from gua.report.zones import find_zone
from gua.store.database import open_reader
from gua_fleet.compare import compare_reports
from gua_fleet.demo.fleet import database, make_fleet
from gua_fleet.export.datasets import DATASETS
from gua_fleet.inventory.load import load_inventory
from gua_fleet.merge import Known, merge_reports
from gua_fleet.model import Document, Host, HostResult, Outcome, Seen
from gua_fleet.view import rendered
from gua_fleet.view_compare import compare_view

_SPAN_MS = 3 * 86_400_000


def compare_screen(now_ms: int, seen: Seen) -> str:
    """The made-up fleet's last three days against the three before. seen: what is known of its silent host."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        try:
            hosts = load_inventory(str(make_fleet(Path("gua-demo"), now_ms=now_ms, utc_offset_ms=0))).hosts
            this, before = (_window(hosts, until_ms, now_ms, seen) for until_ms in (now_ms, now_ms - _SPAN_MS))
        finally:
            os.chdir(here)
    return rendered(compare_view(compare_reports(this, before, generated_at_ms=now_ms)), "table", 100)


def _window(hosts: tuple[Host, ...], until_ms: int, now_ms: int, seen: Seen) -> Document:
    span = {"since_ms": until_ms - _SPAN_MS, "until_ms": until_ms}
    results = []
    for host in hosts:
        if host.connection != "local":
            results.append(HostResult(host, Outcome.UNREACHABLE, "connection refused"))
            continue
        place = Location(database(Path("gua-demo"), host.name).absolute(), "the demonstration's")
        with open_reader(place.path) as reader:
            options = {"zone": find_zone("UTC"), "zone_name": "UTC", "scheduler": None}
            document = build_report(reader, **span, now_ms=now_ms, **options)
        results.append(HostResult(host, Outcome.OK, document=dict(document)))
    known = Known(seen={host.name: seen for host in hosts if host.connection != "local"})
    return merge_reports(results, **span, tz="UTC", generated_at_ms=now_ms, known=known)


def datasets() -> str:
    """Every data set and column of an export, as tables."""
    parts = []
    for dataset in DATASETS:
        by = f"; a folder for each day of `{dataset.by}`" if dataset.by else ""
        parts.append(f"**{dataset.name}**: {dataset.meaning}{by}.\n\n| column | kind | |\n| --- | --- | --- |\n")
        parts += [f"| `{one.name}` | {one.kind} | {one.meaning} |\n" for one in dataset.columns]
        parts.append("\n")
    return "".join(parts)
