"""The question of `gua-fleet sync-once`: sample now, store where allowed, push where enrolled, and answer."""

from __future__ import annotations

from gua_fleet.probes.probe import Probe

SYNC_ONCE_PROBE = Probe("sync-once", "gua.observation/1", ("sync-once", "--push", "auto", "--json"), writes=True)
