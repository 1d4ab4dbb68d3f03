from __future__ import annotations

from pathlib import Path

from gua_fleet.model import Host, Outcome
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.ssh.keep import KeptFleet
from gua_fleet.ssh.settings import SweepSettings
from tests.fleet.ssh.sshd import Keys, Sshd, host, write_agent


def _hosts(sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path) -> list[Host]:
    known = tmp_path / "known_hosts"
    known.write_text(sshd.known_line())
    return [host(sshd, keys, known, agent, name=name) for name in ("a", "b")]


def _sessions(agent: Path, body: str) -> Path:
    """An agent that also says in which session it runs: its client's port is another one in each connection."""
    return write_agent(agent, f"answer(client=os.environ['SSH_CONNECTION'].split()[1]{body})")


def test_kept_fleet_asks_again_over_the_same_connections(sshd: Sshd, keys: Keys, tmp_path: Path) -> None:
    hosts = _hosts(sshd, keys, _sessions(tmp_path / "agent" / "gua", ""), tmp_path)
    with KeptFleet(hosts, SweepSettings(timeout_s=60)) as fleet:
        rounds = [[result.document for result in fleet.ask(DOCTOR_PROBE)] for _ in range(3)]
    ports = [[document["client"] for document in documents if document] for documents in rounds]
    assert ports[0] == ports[1] == ports[2]
    assert len(set(ports[0])) == 2


def test_kept_fleet_dials_anew_where_a_connection_was_lost(sshd: Sshd, keys: Keys, tmp_path: Path) -> None:
    hosts = _hosts(sshd, keys, _sessions(tmp_path / "agent" / "gua", ""), tmp_path)
    with KeptFleet(hosts, SweepSettings(timeout_s=60)) as fleet:
        first = fleet.ask(DOCTOR_PROBE)
        sshd.end_sessions()
        again = fleet.ask(DOCTOR_PROBE)
    assert [result.outcome for result in (*first, *again)] == [Outcome.OK] * 4
    assert all(
        one.document["client"] != other.document["client"]
        for one, other in zip(first, again, strict=True)
        if one.document and other.document
    )


def test_kept_fleet_tells_of_an_agent_that_is_gone_and_is_back(
    sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path
) -> None:
    hosts = _hosts(sshd, keys, agent, tmp_path)
    away = agent.with_name("away")
    with KeptFleet(hosts, SweepSettings(timeout_s=60)) as fleet:
        assert [result.outcome for result in fleet.ask(DOCTOR_PROBE)] == [Outcome.OK] * 2
        agent.rename(away)
        assert [result.outcome for result in fleet.ask(DOCTOR_PROBE)] == [Outcome.AGENT_MISSING] * 2
        away.rename(agent)
        assert [result.outcome for result in fleet.ask(DOCTOR_PROBE)] == [Outcome.OK] * 2


def test_kept_fleet_of_local_hosts_needs_no_connection(agent: Path) -> None:
    local = Host("here", "here", connection="local", gua_command=(str(agent),))
    with KeptFleet([local], SweepSettings(timeout_s=60)) as fleet:
        assert [fleet.ask(DOCTOR_PROBE)[0].outcome for _ in range(2)] == [Outcome.OK] * 2
