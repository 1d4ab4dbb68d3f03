from __future__ import annotations

import getpass
from pathlib import Path

from gua_fleet.model import Host
from gua_fleet.ssh.ssh_config import SshConfig
from gua_fleet.ssh.target import target_from_options
from tests.fleet.ssh.sshd import needs_openssh


def test_target_silent_inventory_means_port_22_and_the_local_user() -> None:
    target = target_from_options(Host("n", "n.example.org"), {})
    assert (target.address, target.port, target.user) == ("n.example.org", 22, getpass.getuser())
    assert (target.jump, target.proxy_command, target.named_identity) == (None, None, False)


def test_target_dev_null_does_not_switch_checking_off() -> None:
    target = target_from_options(
        Host("n", "n"), {"userknownhostsfile": ["/dev/null"], "globalknownhostsfile": ["none"]}
    )
    assert target.known_hosts == (Path("~/.ssh/known_hosts").expanduser(),)


def test_target_inventory_alone_is_used_as_it_is() -> None:
    host = Host(
        "n", "n", port=2222, user="alice", identity_file="~/key", jump="b@j:1", ssh_options={"hostkeyalias": "x"}
    )
    target = SshConfig().target(host)
    assert (target.port, target.user, target.jump, target.key_name) == (2222, "alice", "b@j:1", "x")
    assert target.identity_files == (Path("~/key").expanduser(),)


def _config(tmp_path: Path, text: str) -> dict[str, str]:
    file = tmp_path / "ssh_config"
    file.write_text(text)
    return {"-F": str(file)}


@needs_openssh
def test_target_ssh_config_is_read_by_openssh_with_include_and_match(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("Host gpu*\n  User bob\n  ProxyJump bastion\n")
    text = (
        f"Include {tmp_path}/more\nHost gpu1\n HostName 10.9.8.7\n Port 2200\nMatch host 10.9.8.7\n IdentityFile /k\n"
    )
    target = SshConfig().target(Host("gpu1", "gpu1", ssh_options=_config(tmp_path, text)))
    assert (target.address, target.port, target.user, target.jump) == ("10.9.8.7", 2200, "bob", "bastion")
    assert target.identity_files == (Path("/k"),)


@needs_openssh
def test_target_inventory_wins_over_ssh_config(tmp_path: Path) -> None:
    options = _config(tmp_path, "Host *\n  Port 2200\n  User bob\n  ProxyJump bastion\n")
    target = SshConfig().target(Host("n", "n", port=22, user="alice", jump="other", ssh_options=options))
    assert (target.port, target.user, target.jump) == (22, "alice", "other")


@needs_openssh
def test_target_broken_ssh_config_is_named_once_and_left_out(tmp_path: Path) -> None:
    config = SshConfig()
    for name in ("a", "b"):
        host = Host(name, name, port=23, ssh_options=_config(tmp_path, "Host *\n  Nonsense yes\n"))
        assert config.target(host).port == 23
    (warning,) = config.warnings
    assert "line 2" in warning
    assert "going on without it" in warning
