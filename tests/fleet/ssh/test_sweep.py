from __future__ import annotations

from pathlib import Path

from gua_fleet.model import Outcome
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.ssh.sweep import SweepSettings, sweep
from tests.fleet.ssh.sshd import Keys, Sshd, host


def test_sweep_known_host_gives_its_document(sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(sshd.known_line())
    (result,) = sweep([host(sshd, keys, known, agent)], DOCTOR_PROBE, SweepSettings())
    assert (result.outcome, result.detail) == (Outcome.OK, None)
    assert result.document is not None
    assert result.document["arguments"][:2] == ["doctor", "--json"]
