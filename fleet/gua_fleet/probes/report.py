"""The question of `gua-fleet report`: one host's own report over a window given in absolute times."""

from __future__ import annotations

from gua.report.document import SCHEMA
from gua.units import to_iso
from gua_fleet.probes.probe import Probe


def report_probe(*, since_ms: int, until_ms: int, tz: str) -> Probe:
    """Ask for the report over [since_ms, until_ms), Unix UTC milliseconds, its hours told in zone `tz`."""
    window = ("--since", to_iso(since_ms), "--until", to_iso(until_ms), "--tz", tz)
    return Probe("report", SCHEMA, ("report", "--format", "json", *window))
