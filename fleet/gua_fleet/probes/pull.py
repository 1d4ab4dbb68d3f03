"""The question of `gua-fleet pull`: the history after a revision, as `gua export` streams it."""

from __future__ import annotations

from gua.export.records import SCHEMA
from gua_fleet.probes.probe import Probe


def pull_probe(since_rev: int, *, rollups_only: bool) -> Probe:
    """Ask for what was written after this revision. An export is no framed document; what answers instead of it is."""
    more = ("--rollups-only",) if rollups_only else ()
    return Probe("pull", SCHEMA, ("export", "--since-rev", str(since_rev), *more))
