"""What a sweep makes of answers, good and bad."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from gua_fleet.model import Host, Outcome
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import Standing, sweep
from tests.fleet.ssh.asking import ask
from tests.fleet.ssh.sshd import Keys, Sshd, host, write_agent


def test_sweep_known_host_gives_its_document(sshd: Sshd, keys: Keys, agent: Path, known: Path) -> None:
    result = ask(host(sshd, keys, known, agent))
    assert (result.outcome, result.detail) == (Outcome.OK, None)
    assert result.document is not None
    assert result.document["arguments"][:2] == ["doctor", "--json"]


def test_sweep_document_of_three_megabytes_arrives_whole(sshd: Sshd, keys: Keys, known: Path, tmp_path: Path) -> None:
    agent = write_agent(tmp_path / "big", "sys.stderr.write('e' * 3_000_000); answer(blob='x' * 3_000_000)")
    result = ask(host(sshd, keys, known, agent))
    assert result.document is not None
    assert len(result.document["blob"]) == 3_000_000


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_sweep_endless_output_is_stopped_at_the_cap(
    sshd: Sshd, keys: Keys, known: Path, tmp_path: Path, stream: str
) -> None:
    agent = write_agent(tmp_path / "endless", f"while True: sys.{stream}.write('y' * 65536)")
    result = ask(host(sshd, keys, known, agent), cap_bytes=1 << 20)
    assert result.outcome is Outcome.BAD_OUTPUT
    assert (result.detail or "").startswith("the answer is too long: stopped reading")


@pytest.mark.parametrize(
    "noise",
    [
        'print("hello from .bashrc"); answer(); print("bye")',
        'sys.stdout.write("\\x1b]3008;start\\x1b\\\\"); answer(); sys.stdout.write("\\x1b]3008;end\\x1b\\\\")',
        "sys.stdout.buffer.write(b'caf\\xe9 \\x00 \\n'); sys.stdout.flush(); answer()",
    ],
)
def test_sweep_noise_around_the_frame_is_ignored(
    sshd: Sshd, keys: Keys, known: Path, tmp_path: Path, noise: str
) -> None:
    assert ask(host(sshd, keys, known, write_agent(tmp_path / "noisy", noise))).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("body", "outcome", "detail"),
    [
        (
            "sys.stdout.write(frame({'schema': 'gua.doctor/1'})[:-80])",
            Outcome.BAD_OUTPUT,
            "the answer was cut before its closing line; ask again",
        ),
        ("print('This account is not available.'); sys.exit(1)", Outcome.BAD_OUTPUT, "This account is not available."),
        ("print('just text')", Outcome.BAD_OUTPUT, "the answer holds no frame: just text"),
        ("raise ValueError('inside')", Outcome.AGENT_ERROR, "exit status 1: ValueError: inside"),
        ("os.kill(os.getpid(), 9)", Outcome.AGENT_ERROR, "the agent was killed there"),
        ("answer(schema='gua.doctor/2', host={'agent_version': '9.1'})", Outcome.BAD_OUTPUT, "version 9.1"),
        (
            "sys.stdout.write(frame({'schema': 'gua.error/1', 'code': 'database_missing', 'message': 'none'}))",
            Outcome.NO_HISTORY,
            "none",
        ),
    ],
)
def test_sweep_bad_answer_is_named(
    sshd: Sshd, keys: Keys, known: Path, tmp_path: Path, body: str, outcome: Outcome, detail: str
) -> None:
    result = ask(host(sshd, keys, known, write_agent(tmp_path / "bad", body)))
    assert result.outcome is outcome
    assert detail in (result.detail or "")
    assert result.document is None


def test_sweep_what_reads_its_input_there_finds_none(sshd: Sshd, keys: Keys, known: Path, tmp_path: Path) -> None:
    curious = write_agent(tmp_path / "curious", "answer(read=sys.stdin.read())")
    document = ask(host(sshd, keys, known, curious)).document
    assert document is not None
    assert document["read"] == ""


@pytest.mark.parametrize("said", ["forward_agent: true", "gateway: nobody@127.0.0.1:9"])
def test_sweep_takes_nothing_from_a_fabric_yml_written_for_other_work(
    sshd: Sshd, keys: Keys, known: Path, tmp_path: Path, said: str
) -> None:
    (Path.home() / ".fabric.yml").write_text(f"{said}\n")
    trusting = write_agent(tmp_path / "trusting", "answer(forwarded=os.environ.get('SSH_AUTH_SOCK'))")
    result = ask(host(sshd, keys, known, trusting))
    assert (result.outcome, (result.document or {}).get("forwarded")) == (Outcome.OK, None)


def test_sweep_without_a_thread_to_spare_has_an_outcome_for_every_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    hosts = [Host(name, name, connection="local") for name in ("a", "b")]
    results = sweep(hosts, DOCTOR_PROBE, SweepSettings(forks=1))
    expected = (Outcome.UNREACHABLE, "can't start new thread: give fewer --forks")
    assert [(result.outcome, result.detail) for result in results] == [expected] * 2


def test_sweep_agent_missing_names_the_path_and_the_cure(sshd: Sshd, keys: Keys, known: Path) -> None:
    result = ask(host(sshd, keys, known, ("/opt/none/gua",)))
    assert result.outcome is Outcome.AGENT_MISSING
    assert "no agent at /opt/none/gua: deploy it with ansible-playbook deploy.yml" in (result.detail or "")


def test_sweep_connection_cut_in_the_middle_of_an_answer_is_unreachable(
    sshd: Sshd, keys: Keys, known: Path, tmp_path: Path
) -> None:
    # the session's own sshd is the parent of the shell that runs `timeout`: ending it cuts the line
    body = """
sys.stdout.write(frame({"schema": "gua.doctor/1"})[:40]); sys.stdout.flush()
time.sleep(0.2)
parent = os.getppid()
for _ in range(3):
    name = open(f"/proc/{parent}/comm").read().strip()
    if name.startswith("sshd"):
        os.kill(parent, 9)
        break
    parent = int(open(f"/proc/{parent}/stat").read().rpartition(")")[2].split()[1])
time.sleep(60)
"""
    result = ask(host(sshd, keys, known, write_agent(tmp_path / "cut", body)), timeout_s=50.0)
    assert result.outcome is Outcome.UNREACHABLE
    assert "connection was lost" in (result.detail or "")


def test_sweep_host_in_maintenance_or_skipped_is_not_asked(keys: Keys, tmp_path: Path) -> None:
    hosts = [
        host(1, keys, tmp_path, ("x",), maintenance="until Monday"),
        host(1, keys, tmp_path, ("x",), skip_reason="no address"),
    ]
    results = sweep(hosts, DOCTOR_PROBE, SweepSettings())
    assert [(r.outcome_text, r.detail, r.failed) for r in results] == [
        ("maintenance", "until Monday", False),
        ("skipped", "no address", False),
    ]


def test_sweep_forced_command_that_prints_text_is_bad_output(keys: Keys, agent: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    with Sshd(tmp_path / "forced", keys, "ForceCommand echo only sftp here") as server:
        known.write_text(server.known_line())
        result = ask(host(server, keys, known, agent))
    assert (result.outcome, result.detail) == (Outcome.BAD_OUTPUT, "the answer holds no frame: only sftp here")


def test_sweep_interrupted_keeps_what_came_and_says_what_did_not(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    slow = write_agent(tmp_path / "slow", "time.sleep(120)")
    hosts = [host(sshd, keys, known, slow, name="slow"), host(sshd, keys, known, agent, name="quick")]

    def interrupt_after_the_first(standing: Standing) -> None:
        raise KeyboardInterrupt

    started_s = time.monotonic()
    results = sweep(hosts, DOCTOR_PROBE, SweepSettings(), progress=interrupt_after_the_first)
    assert time.monotonic() - started_s < 60
    slow_one, quick_one = results
    assert (slow_one.outcome, slow_one.detail) == (Outcome.TIMEOUT, "interrupted before it answered")
    assert slow_one.outcome_text.startswith("timeout:")
    assert quick_one.outcome is Outcome.OK
