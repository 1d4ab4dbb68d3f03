from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from gua_fleet.errors import FleetError
from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.sweep import Standing, sweep
from tests.fleet.ssh.sshd import Keys, Sshd, host, needs_openssh, write_agent


@pytest.fixture
def known(sshd: Sshd, tmp_path: Path) -> Path:
    file = tmp_path / "known_hosts"
    file.write_text(sshd.known_line())
    return file


def _ask(target: Host, **settings: object) -> HostResult:
    (result,) = sweep([target], DOCTOR_PROBE, SweepSettings(**settings))  # type: ignore[arg-type]
    return result


def test_sweep_known_host_gives_its_document(sshd: Sshd, keys: Keys, agent: Path, known: Path) -> None:
    result = _ask(host(sshd, keys, known, agent))
    assert (result.outcome, result.detail) == (Outcome.OK, None)
    assert result.document is not None
    assert result.document["arguments"][:2] == ["doctor", "--json"]


def test_sweep_document_of_three_megabytes_arrives_whole(sshd: Sshd, keys: Keys, known: Path, tmp_path: Path) -> None:
    agent = write_agent(tmp_path / "big", "sys.stderr.write('e' * 3_000_000); answer(blob='x' * 3_000_000)")
    result = _ask(host(sshd, keys, known, agent))
    assert result.document is not None
    assert len(result.document["blob"]) == 3_000_000


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_sweep_endless_output_is_stopped_at_the_cap(
    sshd: Sshd, keys: Keys, known: Path, tmp_path: Path, stream: str
) -> None:
    agent = write_agent(tmp_path / "endless", f"while True: sys.{stream}.write('y' * 65536)")
    result = _ask(host(sshd, keys, known, agent), cap_bytes=1 << 20)
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
    assert _ask(host(sshd, keys, known, write_agent(tmp_path / "noisy", noise))).outcome is Outcome.OK


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
    result = _ask(host(sshd, keys, known, write_agent(tmp_path / "bad", body)))
    assert result.outcome is outcome
    assert detail in (result.detail or "")
    assert result.document is None


def test_sweep_what_reads_its_input_there_finds_none(sshd: Sshd, keys: Keys, known: Path, tmp_path: Path) -> None:
    curious = write_agent(tmp_path / "curious", "answer(read=sys.stdin.read())")
    document = _ask(host(sshd, keys, known, curious)).document
    assert document is not None
    assert document["read"] == ""


@pytest.mark.parametrize("said", ["forward_agent: true", "gateway: nobody@127.0.0.1:9"])
def test_sweep_takes_nothing_from_a_fabric_yml_written_for_other_work(
    sshd: Sshd, keys: Keys, known: Path, tmp_path: Path, said: str
) -> None:
    (Path.home() / ".fabric.yml").write_text(f"{said}\n")
    trusting = write_agent(tmp_path / "trusting", "answer(forwarded=os.environ.get('SSH_AUTH_SOCK'))")
    result = _ask(host(sshd, keys, known, trusting))
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
    result = _ask(host(sshd, keys, known, ("/opt/none/gua",)))
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
    result = _ask(host(sshd, keys, known, write_agent(tmp_path / "cut", body)), timeout_s=50.0)
    assert result.outcome is Outcome.UNREACHABLE
    assert "connection was lost" in (result.detail or "")


def test_sweep_wrong_key_is_auth_failed_and_says_what_was_tried(
    sshd: Sshd, keys: Keys, agent: Path, known: Path
) -> None:
    result = _ask(host(sshd, keys, known, agent, identity_file=str(keys.stranger), user="nobody-here"))
    assert result.outcome is Outcome.AUTH_FAILED
    assert result.detail == f"nobody-here@127.0.0.1 was not let in; tried {keys.stranger}"


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """A key that needs a passphrase."""
    return Keys(tmp_path).make("locked", "ed25519", passphrase="secret words")


def test_sweep_key_with_a_passphrase_beside_a_host_with_a_good_one_is_auth_failed_and_names_the_cure(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, locked: Path
) -> None:
    hosts = [host(sshd, keys, known, agent, identity_file=str(locked)), host(sshd, keys, known, agent, name="good")]
    shut_out, good = sweep(hosts, DOCTOR_PROBE, SweepSettings())
    assert shut_out.outcome is Outcome.AUTH_FAILED
    assert f"{locked} (needs a passphrase: add it to an agent with ssh-add)" in (shut_out.detail or "")
    assert good.outcome is Outcome.OK


def test_sweep_where_every_key_needs_a_passphrase_asks_nobody(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, locked: Path
) -> None:
    hosts = [host(sshd, keys, known, agent, identity_file=str(locked), name=f"h{number}") for number in range(3)]
    with pytest.raises(FleetError, match=f"{locked} needs a passphrase.*run `ssh-add {locked}` first") as caught:
        sweep(hosts, DOCTOR_PROBE, SweepSettings())
    assert caught.value.exit_status == 2


@pytest.mark.parametrize("suffix", ["", ".pub"], ids=["key", "public-key"])
def test_sweep_key_with_a_passphrase_that_an_agent_holds_is_let_in(
    sshd: Sshd,
    keys: Keys,
    agent: Path,
    known: Path,
    locked: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
) -> None:
    askpass = tmp_path / "askpass"
    askpass.write_text("#!/bin/sh\necho secret words\n")
    askpass.chmod(0o755)
    place = tmp_path / "agent.sock"
    # `-D` keeps it in the foreground, so that it ends with this test
    ssh_agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(place)], stdout=subprocess.DEVNULL)
    try:
        _wait_for(place)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        ask = {**os.environ, "SSH_ASKPASS": str(askpass), "SSH_ASKPASS_REQUIRE": "force"}
        subprocess.run(["ssh-add", "-q", str(locked)], env=ask, check=True, stdin=subprocess.DEVNULL)
        authorized = tmp_path / "sshd" / "authorized_keys"
        authorized.write_text(locked.with_suffix(".pub").read_text())
        result = _ask(
            host(sshd, keys, known, agent, identity_file=f"{locked}{suffix}", **_named(known, identitiesonly="yes"))
        )
    finally:
        ssh_agent.terminate()
        ssh_agent.wait()
    assert (result.outcome, result.detail) == (Outcome.OK, None)


def _wait_for(path: Path) -> None:
    """Until somebody listens at the socket: it is there a moment before that."""
    deadline_s = time.monotonic() + 30
    with socket.socket(socket.AF_UNIX) as probe:
        while probe.connect_ex(str(path)) != 0:
            assert time.monotonic() < deadline_s
            time.sleep(0.02)


def test_sweep_missing_key_file_is_auth_failed_and_named(sshd: Sshd, keys: Keys, agent: Path, known: Path) -> None:
    result = _ask(host(sshd, keys, known, agent, identity_file="/nowhere/key"))
    assert result.outcome is Outcome.AUTH_FAILED
    assert "/nowhere/key (no such file)" in (result.detail or "")


def test_sweep_public_key_without_an_agent_is_told_as_such(sshd: Sshd, keys: Keys, agent: Path, known: Path) -> None:
    public = keys.client.with_suffix(".pub")
    result = _ask(host(sshd, keys, known, agent, identity_file=str(public)))
    assert result.outcome is Outcome.AUTH_FAILED
    assert f"{public} (a public key, the private half of which is in no agent)" in (result.detail or "")


def test_sweep_host_that_hangs_up_after_too_many_keys_is_auth_failed(
    keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    ours = tmp_path / "home" / ".ssh"
    ours.mkdir()
    for kind in ("ed25519", "ecdsa", "rsa"):
        Keys.make(keys, f"{ours}/id_{kind}", kind)
    with Sshd(tmp_path / "strict", keys, "MaxAuthTries 2") as strict:
        known.write_text(strict.known_line())
        result = _ask(host(strict, keys, known, agent, identity_file=None))
    assert result.outcome is Outcome.AUTH_FAILED
    assert f"tried {ours}/id_ed25519, {ours}/id_ecdsa: these may be too many for it (MaxAuthTries)" in (
        result.detail or ""
    )


def test_sweep_unknown_host_key_is_refused_and_shown(sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path) -> None:
    result = _ask(host(sshd, keys, tmp_path / "empty", agent))
    assert result.outcome is Outcome.HOST_KEY_UNKNOWN
    assert f"connect once with `ssh -p {sshd.port} " in (result.detail or "")
    assert "SHA256:" in (result.detail or "")


def _named(known: Path, **options: str) -> dict[str, object]:
    """Settings of a host, as they are in an ssh_config of the machine or in the inventory's ssh arguments."""
    return {"ssh_options": {"userknownhostsfile": str(known), "globalknownhostsfile": "none", **options}}


@pytest.mark.parametrize("hashed", ["no", "yes"])
def test_sweep_accept_new_records_the_key_and_then_knows_it(
    sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path, hashed: str
) -> None:
    file = tmp_path / "fresh" / "known_hosts"
    target = host(sshd, keys, file, agent, **_named(file, hashknownhosts=hashed))
    notes: list[str] = []
    (result,) = sweep([target], DOCTOR_PROBE, SweepSettings(accept_new=True), notice=notes.append)
    assert result.outcome is Outcome.OK
    assert (file.read_text() == sshd.known_line(), file.read_text().startswith("|1|")) == (
        hashed == "no",
        hashed == "yes",
    )
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert notes[0].startswith(f"recorded the host key of [127.0.0.1]:{sshd.port} SHA256:")
    assert _ask(target).outcome is Outcome.OK


@pytest.mark.parametrize(("word", "warned"), [("accept-new", False), ("no", True), ("off", True)])
def test_sweep_strict_host_key_checking_of_the_inventory_is_honoured_but_never_off(
    sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path, word: str, warned: bool
) -> None:
    file = tmp_path / "known_hosts"
    target = host(sshd, keys, file, agent, **_named(file, stricthostkeychecking=word))
    notes: list[str] = []
    (result,) = sweep([target], DOCTOR_PROBE, SweepSettings(), notice=notes.append)
    assert result.outcome is Outcome.OK
    assert any("is taken as accept-new" in note for note in notes) is warned
    assert any("recorded the host key" in note for note in notes)
    file.write_text(sshd.known_line("other_host"))
    assert _ask(target).outcome is Outcome.HOST_KEY_CHANGED


@pytest.mark.parametrize("accept_new", [False, True])
def test_sweep_changed_host_key_is_never_accepted(
    sshd: Sshd, keys: Keys, agent: Path, tmp_path: Path, accept_new: bool
) -> None:
    file = tmp_path / "changed"
    file.write_text("# one\n" + sshd.known_line("other_host"))
    result = _ask(host(sshd, keys, file, agent), accept_new=accept_new)
    assert result.outcome is Outcome.HOST_KEY_CHANGED
    assert f"{file}:2" in (result.detail or "")
    assert "ssh-keygen" in (result.detail or "")
    assert sshd.known_line() not in file.read_text()


@pytest.mark.parametrize("accept_new", [False, True])
def test_sweep_revoked_host_key_is_never_accepted(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, accept_new: bool
) -> None:
    known.write_text(known.read_text() + f"@revoked * {keys.public('host')}\n")
    result = _ask(host(sshd, keys, known, agent), accept_new=accept_new)
    assert result.outcome is Outcome.HOST_KEY_CHANGED
    assert f"is revoked in {known}:2" in (result.detail or "")


def test_sweep_damaged_known_hosts_still_trusts_its_good_lines(
    sshd: Sshd, keys: Keys, agent: Path, known: Path
) -> None:
    known.write_bytes(b"@cert-authority * ssh-ed25519 AAAA\n\xe9\xff junk\n" + known.read_bytes())
    assert _ask(host(sshd, keys, known, agent)).outcome is Outcome.OK


def test_sweep_asks_for_the_key_type_that_is_on_file(keys: Keys, agent: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    with Sshd(tmp_path / "two", keys, host_keys=("host", "ecdsa_host")) as server:
        known.write_text(server.known_line("ecdsa_host"))
        assert _ask(host(server, keys, known, agent)).outcome is Outcome.OK


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
        result = _ask(host(server, keys, known, agent))
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


def test_sweep_local_host_is_asked_without_ssh(agent: Path) -> None:
    local = Host(name="here", address="here", connection="local", gua_command=(str(agent),))
    assert _ask(local).outcome is Outcome.OK


def test_sweep_local_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    body = f"pid = os.fork()\nopen({str(marker)!r}, 'a').write(f'{{os.getpid()}}\\n')\ntime.sleep(60)"
    local = Host("here", "here", connection="local", gua_command=(str(write_agent(tmp_path / "hang", body)),))
    result = _ask(local, timeout_s=6.0)
    assert result.outcome_text == "timeout:output"
    pids = [int(line) for line in marker.read_text().split()]
    assert len(pids) == 2
    deadline = time.monotonic() + 40
    while any(_alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_sweep_local_agent_missing_is_named() -> None:
    result = _ask(Host("here", "here", connection="local", gua_command=("/opt/none/gua",)))
    assert result.outcome is Outcome.AGENT_MISSING


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_alive_sees_this_process() -> None:
    assert _alive(os.getpid())


@needs_openssh
@pytest.mark.parametrize(("listed", "outcome"), [("host", Outcome.HOST_KEY_CHANGED), ("other_host", Outcome.OK)])
def test_sweep_binary_list_of_revoked_keys_is_honoured(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path, listed: str, outcome: Outcome
) -> None:
    revoked = tmp_path / "revoked.krl"
    command = ["ssh-keygen", "-q", "-k", "-f", str(revoked), str(keys.folder / f"{listed}.pub")]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    result = _ask(host(sshd, keys, known, agent, **_named(known, revokedhostkeys=str(revoked))))
    assert result.outcome is outcome
    assert ("is revoked in" in (result.detail or "")) is (listed == "host")


def test_sweep_list_of_revoked_keys_that_is_damaged_or_missing_lets_no_key_be_believed(
    sshd: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.krl"
    damaged.write_bytes(b"SSHKRL\n\0 and no more")
    for file in (damaged, tmp_path / "missing.krl"):
        result = _ask(host(sshd, keys, known, agent, **_named(known, revokedhostkeys=str(file))))
        assert result.outcome is Outcome.HOST_KEY_CHANGED
        assert "no host key can be believed" in (result.detail or "")
