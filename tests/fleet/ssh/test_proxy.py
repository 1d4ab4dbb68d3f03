from __future__ import annotations

import getpass
import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gua_fleet.model import Host, Outcome
from gua_fleet.ssh.proxy import proxy_argv
from gua_fleet.ssh.target import target_from_options
from tests.fleet.ssh import stalls
from tests.fleet.ssh.asking import ask
from tests.fleet.ssh.sshd import Keys, Sshd, closed_port, host, needs_openssh


@pytest.fixture
def bastion(tmp_path: Path, keys: Keys) -> Iterator[Sshd]:
    with Sshd(tmp_path / "bastion", keys, host_keys=("other_host",)) as server:
        yield server


@pytest.fixture
def known(sshd: Sshd, bastion: Sshd, tmp_path: Path) -> Path:
    file = tmp_path / "known_hosts"
    file.write_text(sshd.known_line() + bastion.known_line())
    return file


def _jump(keys: Keys, bastion: Sshd, known: Path, tmp_path: Path, key: str = "client") -> dict[str, object]:
    """Jump settings as in an ssh_config, so that neither the user's own files nor his agent take part."""
    config = tmp_path / "ssh_config"
    config.write_text(
        f"Host 127.0.0.1\n  IdentityFile {keys.folder / key}\n  IdentitiesOnly yes\n  IdentityAgent none\n"
        f"  UserKnownHostsFile {known}\n  GlobalKnownHostsFile none\n"
    )
    options = {"-F": str(config), "userknownhostsfile": str(known), "globalknownhostsfile": "none"}
    return {"jump": f"{getpass.getuser()}@127.0.0.1:{bastion.port}", "ssh_options": options}


def _proxies() -> set[int]:
    """Our children called `ssh`, zombies too. By parent, not by thread: a thread's children outlive it."""
    return {int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if _is_proxy(stat)}


def _is_proxy(stat: Path) -> bool:
    try:
        name, _, rest = stat.read_text(errors="replace").rpartition(")")
    except (FileNotFoundError, ProcessLookupError):
        return False  # it ended meanwhile
    return name.endswith("(ssh") and int(rest.split()[1]) == os.getpid()


def test_sweep_through_a_jump_host_gives_the_document_and_leaves_no_child(
    sshd: Sshd, bastion: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    before = _proxies()
    result = ask(host(sshd, keys, known, agent, **_jump(keys, bastion, known, tmp_path)))
    assert (result.outcome, result.detail) == (Outcome.OK, None)
    deadline = time.monotonic() + 60
    while _proxies() - before:
        assert time.monotonic() < deadline, "the proxy command is still there"
        time.sleep(0.02)


def test_sweep_unknown_key_of_the_jump_host_is_refused(
    sshd: Sshd, bastion: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    known.write_text(sshd.known_line())
    result = ask(host(sshd, keys, known, agent, **_jump(keys, bastion, known, tmp_path)))
    assert result.outcome is Outcome.HOST_KEY_UNKNOWN
    assert f"127.0.0.1]:{bastion.port}: its host key is not on file" in (result.detail or "")


def test_sweep_changed_key_of_the_jump_host_is_refused_even_with_accept_new(
    sshd: Sshd, bastion: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    known.write_text(sshd.known_line() + bastion.known_line("host"))
    result = ask(host(sshd, keys, known, agent, **_jump(keys, bastion, known, tmp_path)), accept_new=True)
    assert result.outcome is Outcome.HOST_KEY_CHANGED


@pytest.fixture
def outer(tmp_path: Path, keys: Keys) -> Iterator[list[Sshd]]:
    """Two more jump hosts."""
    with (
        Sshd(tmp_path / "outer", keys, host_keys=("ecdsa_host",)) as first,
        Sshd(tmp_path / "middle", keys, host_keys=("ecdsa_host",)) as second,
    ):
        yield [first, second]


def test_sweep_every_jump_host_of_a_chain_is_checked(
    sshd: Sshd, bastion: Sshd, outer: list[Sshd], keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    settings = _jump(keys, bastion, known, tmp_path)
    user = getpass.getuser()
    settings["jump"] = ",".join(f"{user}@127.0.0.1:{server.port}" for server in (*outer, bastion))
    target = host(sshd, keys, known, agent, **settings)
    assert ask(target).outcome is Outcome.HOST_KEY_UNKNOWN
    known.write_text(known.read_text() + "".join(server.known_line() for server in outer))
    result = ask(target)
    assert (result.outcome, result.detail) == (Outcome.OK, None)


def test_sweep_jump_host_that_lets_nobody_in_is_auth_failed(
    sshd: Sshd, bastion: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    result = ask(host(sshd, keys, known, agent, **_jump(keys, bastion, known, tmp_path, key="stranger")))
    assert result.outcome is Outcome.AUTH_FAILED
    assert "Permission denied" in (result.detail or "")


def test_sweep_target_closed_behind_the_jump_host_is_unreachable(
    bastion: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    with closed_port() as port:
        result = ask(host(port, keys, known, agent, **_jump(keys, bastion, known, tmp_path)))
    assert result.outcome is Outcome.UNREACHABLE
    assert "Connection refused" in (result.detail or "")


def test_sweep_target_silent_behind_the_jump_host_is_a_timeout(
    bastion: Sshd, keys: Keys, agent: Path, known: Path, tmp_path: Path
) -> None:
    with stalls.serving(stalls.silent) as port:
        started_s = time.monotonic()
        result = ask(host(port, keys, known, agent, **_jump(keys, bastion, known, tmp_path)), timeout_s=3.0)
        assert time.monotonic() - started_s < 9  # less than the connect limit of ten
    assert result.outcome_text == "timeout:connect"


def test_sweep_proxy_command_is_run_with_its_tokens(sshd: Sshd, keys: Keys, agent: Path, known: Path) -> None:
    relay = (
        "import os, socket, sys, threading; s = socket.create_connection((sys.argv[1], int(sys.argv[2])));"
        "copy = lambda get, put: [put(d) for d in iter(lambda: get(65536), b'')];"
        "threading.Thread(target=copy, args=(lambda n: os.read(0, n), s.sendall), daemon=True).start();"
        "copy(s.recv, lambda d: os.write(1, d))"
    )
    command = f'{shlex.quote(sys.executable)} -c "{relay}" %h %p'
    assert ask(host(sshd, keys, known, agent, proxy_command=command)).outcome is Outcome.OK


def test_sweep_proxy_command_that_fails_is_unreachable_in_its_own_words(keys: Keys, known: Path) -> None:
    result = ask(host(22, keys, known, ("x",), proxy_command="sh -c 'echo no way >&2; exit 3'"))
    assert result.outcome is Outcome.UNREACHABLE
    assert "no way" in (result.detail or "")


def test_sweep_user_that_means_something_to_a_shell_gets_no_proxy_command(
    keys: Keys, known: Path, tmp_path: Path
) -> None:
    user, planted = f"a;touch {tmp_path}/planted", tmp_path / "planted"
    result = ask(host(22, keys, known, ("x",), proxy_command="echo %r", user=user))
    assert (result.outcome, planted.exists()) == (Outcome.UNREACHABLE, False)
    assert "cannot stand for %r in its proxy command" in (result.detail or "")


@needs_openssh
@pytest.mark.parametrize(("accept_new", "policy"), [(False, "yes"), (True, "accept-new")])
def test_proxy_argv_jump_hosts_get_the_same_strictness(accept_new: bool, policy: str) -> None:
    target = target_from_options(Host("n", "n", jump="a,bob@b:2222"), {"proxyjump": ["a,bob@b:2222"]})
    argv = proxy_argv(target, lambda hop: accept_new)
    assert f"StrictHostKeyChecking={policy}" in argv
    assert argv[-3:] == ["-W", "[n]:22", "ssh://bob@b:2222"]
    [through] = [word for word in argv if word.startswith("ProxyCommand=")]
    assert f"StrictHostKeyChecking={policy}" in through
    assert through.endswith("-W '[%h]:%p' ssh://a")


@needs_openssh
def test_sweep_chain_of_jump_hosts_tells_what_the_one_in_trouble_says(
    sshd: Sshd, bastion: Sshd, keys: Keys, known: Path, tmp_path: Path
) -> None:
    through = _jump(keys, bastion, known, tmp_path)
    with closed_port() as dead:
        jump = f"{through['jump']},127.0.0.1:{dead}"
        result = ask(host(sshd, keys, known, tmp_path / "gua", **{**through, "jump": jump}))
    assert result.outcome is Outcome.UNREACHABLE
    assert (result.detail or "").endswith("connect failed: Connection refused, stdio forwarding failed")
