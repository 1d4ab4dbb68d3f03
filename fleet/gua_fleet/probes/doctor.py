"""The question of `gua-fleet doctor`. A host that is not ready answers too: its document says so."""

from __future__ import annotations

from gua_fleet.probes.probe import Probe

DOCTOR_PROBE = Probe("doctor", "gua.doctor/1", ("doctor", "--json"))
