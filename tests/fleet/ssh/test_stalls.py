from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
import traceback
from pathlib import Path

import paramiko
import pytest

from gua_fleet.model import Host, Outcome
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.probes.sync_once import SYNC_ONCE_PROBE
from gua_fleet.secrets import Secret
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import sweep
from tests.fleet.ssh import stalls
from tests.fleet.ssh.sshd import Keys, Sshd, closed_port, host, ssh_options, write_agent

# What is promised is half a second after the deadline. The library's own limits, which end a stall where the deadline
# does not, are 15 s and more: both together stay well below that unless this machine is busy, see `patience`.
LEAST_DEADLINE_S = 6.0
LEAST_SLACK_S = 3.0


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return tmp_path / "known_hosts"


def patience(healthy: list[Host]) -> tuple[float, float]:
    """(deadline, slack) in seconds that suit this machine now: many times what the healthy hosts alone take."""
    started_s = time.monotonic()
    sweep(healthy, DOCTOR_PROBE, SweepSettings(timeout_s=60))
    took_s = time.monotonic() - started_s
    return max(LEAST_DEADLINE_S, 10 * took_s), max(LEAST_SLACK_S, took_s)


def test_sweep_host_stalled_at_each_stage_ends_by_the_deadline_and_harms_nobody(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    host_key = paramiko.PKey.from_path(keys.host)
    plain = [stalls.silent, stalls.endless_banner, stalls.banner_then_silence]
    stages = ["connect"] * 3 + ["auth", "open", "exec", "output"]
    conversations = plain + [stalls.stalling(stage, host_key) for stage in stages[3:]]
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(stalls.serving(conversation)) for conversation in conversations]
        known.write_text(sshd.known_line() + "".join(f"[127.0.0.1]:{p} {keys.public('host')}\n" for p in ports))
        healthy = [host(sshd, keys, known, agent, name=f"healthy{number}") for number in range(len(ports))]
        stalled = [host(port, keys, known, agent) for port in ports]
        deadline_s, slack_s = patience(healthy)
        threads_before = set(threading.enumerate())
        started_s = time.monotonic()
        results = sweep(_alternating(healthy, stalled), DOCTOR_PROBE, SweepSettings(timeout_s=deadline_s))
        elapsed_s = time.monotonic() - started_s
        assert [result.outcome for result in results[0::2]] == [Outcome.OK] * len(ports)
        assert [result.outcome_text for result in results[1::2]] == [f"timeout:{stage}" for stage in stages]
        assert elapsed_s <= deadline_s + slack_s
    _wait_for_threads_besides(threads_before)


def test_sweep_remote_command_that_never_ends_is_a_timeout_at_output(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    known.write_text(sshd.known_line())
    slow = write_agent(tmp_path / "slow", "sys.stdout.write('x'); sys.stdout.flush(); time.sleep(240)")
    deadline_s, _ = patience([host(sshd, keys, known, agent)])
    (result,) = sweep([host(sshd, keys, known, slow)], DOCTOR_PROBE, SweepSettings(timeout_s=deadline_s))
    assert result.outcome_text == "timeout:output"
    assert result.detail == f"the command did not finish within {deadline_s:.3g} s"


@pytest.mark.parametrize("stdin", [False, True])
def test_sweep_host_that_refuses_to_run_commands_is_told_as_such(keys: Keys, known: Path, stdin: bool) -> None:
    with stalls.serving(stalls.refusing(paramiko.PKey.from_path(keys.host))) as port:
        known.write_text(f"[127.0.0.1]:{port} {keys.public('host')}\n")
        more = {"become": True, "become_password": Secret("sesame")} if stdin else {}
        refusing = host(port, keys, known, Path("/nowhere/gua"), user="guest", **more)
        (result,) = sweep([refusing], SYNC_ONCE_PROBE if stdin else DOCTOR_PROBE, SweepSettings(timeout_s=60))
    assert (result.outcome, result.stage) == (Outcome.BAD_OUTPUT, None)
    assert (result.detail or "").startswith("the host refuses to run commands for guest: ")


def test_sweep_host_that_goes_down_before_it_runs_the_command_is_unreachable(keys: Keys, known: Path) -> None:
    with stalls.serving(stalls.leaving(paramiko.PKey.from_path(keys.host))) as port:
        known.write_text(f"[127.0.0.1]:{port} {keys.public('host')}\n")
        (result,) = sweep([host(port, keys, known, Path("gua"))], DOCTOR_PROBE, SweepSettings(timeout_s=60))
    assert result.outcome is Outcome.UNREACHABLE
    assert (result.detail or "").startswith("the connection was lost at exec: ")


def test_sweep_more_hosts_than_forks_asks_all_of_them(sshd: Sshd, keys: Keys, agent: Path, known: Path) -> None:
    known.write_text(sshd.known_line())
    with stalls.serving(stalls.silent) as port:
        healthy = [host(sshd, keys, known, agent, name=f"h{n}") for n in range(8)]
        hosts = [host(port, keys, known, agent), *healthy]
        results = sweep(hosts, DOCTOR_PROBE, SweepSettings(forks=2, timeout_s=patience(healthy)[0]))
    assert [result.host.name for result in results] == [each.name for each in hosts]
    assert [result.outcome for result in results[1:]] == [Outcome.OK] * 8


@pytest.mark.parametrize("conversation", [stalls.hangs_up, stalls.not_ssh])
def test_sweep_server_that_speaks_no_ssh_is_unreachable(
    conversation: stalls.Conversation, keys: Keys, known: Path
) -> None:
    with stalls.serving(conversation) as port:
        (result,) = sweep([host(port, keys, known, ("x",))], DOCTOR_PROBE, SweepSettings())
    assert result.outcome is Outcome.UNREACHABLE
    assert result.detail is not None
    assert f"127.0.0.1 port {port} does not speak SSH" in result.detail


def test_sweep_nobody_listens_is_unreachable(keys: Keys, known: Path) -> None:
    with closed_port() as port:
        (result,) = sweep([host(port, keys, known, ("x",))], DOCTOR_PROBE, SweepSettings())
    assert (result.outcome, result.detail) == (Outcome.UNREACHABLE, f"127.0.0.1 port {port}: connection refused")


def test_sweep_name_that_does_not_resolve_is_unreachable_and_says_so(keys: Keys, known: Path) -> None:
    nowhere = host(22, keys, known, ("x",), address="no-such-host.invalid")
    (result,) = sweep([nowhere], DOCTOR_PROBE, SweepSettings())
    assert result.outcome is Outcome.UNREACHABLE
    assert (result.detail or "").startswith("no-such-host.invalid does not resolve")


def _alternating(first: list[Host], second: list[Host]) -> list[Host]:
    return [each for pair in zip(first, second, strict=True) for each in pair]


def _wait_for_threads_besides(before: set[threading.Thread]) -> None:
    """Until every thread begun since has ended. Which ones, not how many: other tests' threads may end meanwhile."""
    patience_s = time.monotonic() + 60
    while left := set(threading.enumerate()) - before:
        assert time.monotonic() < patience_s, "\n".join(map(_where, left))
        time.sleep(0.02)


def _where(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return f"{thread.name}:\n{''.join(traceback.format_stack(frame)[-4:])}"


def test_sweep_library_call_that_never_returns_costs_its_host_only(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known.write_text(sshd.known_line())
    over, resolve = threading.Event(), socket.getaddrinfo

    def hung_directory_service(name: str, *arguments: object) -> object:
        if name == "hung":
            over.wait(240)
        return resolve(name, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", hung_directory_service)
    hosts = [host(22, keys, known, agent, address="hung"), host(sshd, keys, known, agent, name="healthy")]
    deadline_s, slack_s = patience(hosts[1:])
    started_s = time.monotonic()
    hung, healthy = sweep(hosts, DOCTOR_PROBE, SweepSettings(timeout_s=deadline_s))
    assert time.monotonic() - started_s <= deadline_s + slack_s
    over.set()
    assert (hung.outcome_text, healthy.outcome_text) == ("timeout:connect", "ok")


def test_sweep_silence_after_the_banner_is_a_timeout_whichever_limit_is_met_first(keys: Keys, known: Path) -> None:
    options = ssh_options(known, connecttimeout="1")
    with stalls.serving(stalls.banner_then_silence) as port:
        hosts = [host(port, keys, known, ("x",), name=f"h{n}", ssh_options=options) for n in range(12)]
        results = sweep(hosts, DOCTOR_PROBE, SweepSettings(timeout_s=60))
    assert {result.outcome_text for result in results} == {"timeout:connect"}
