from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gua_fleet.errors import InventoryError
from gua_fleet.inventory.load import Inventory, load_inventory
from gua_fleet.model import Host

ANSIBLE = Path(sys.executable).parent

YAML = """
all:
  vars: {subnet: 10.0.0}
  hosts:
    lone:
  children:
    gpu:
      vars: {ansible_user: ops}
      children:
        old:
          hosts:
            zeta: {ansible_host: "{{ subnet }}.3"}
            alpha: {ansible_port: 2222, gua_cards: 8}
        new:
          hosts:
            beta: {ansible_host: "fe80::1%eth0"}
            alpha:
"""

INI = """
[gpu]
node[01:03] ansible_user=ops
[login]
bastion ansible_host=192.0.2.1 ansible_port=2200
[site:children]
gpu
[site:vars]
ansible_ssh_common_args='-J ops@bastion:2200 -o StrictHostKeyChecking=no'
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Inventory:
    """YAML above, loaded once: Ansible takes a second for it."""
    file = tmp_path_factory.mktemp("site") / "inventory.yml"
    file.write_text(YAML)
    return load_inventory(str(file))


def _write(text: str, name: str = "inventory.yml") -> str:
    Path(name).write_text(text)
    return name


def _host(inventory: Inventory, name: str) -> Host:
    return next(host for host in inventory.hosts if host.name == name)


@pytest.mark.parametrize(("name", "text"), [("a.yml", YAML), ("a.ini", INI)])
def test_load_has_the_hosts_that_ansible_has_in_its_order(name: str, text: str) -> None:
    source = _write(text, name)
    listed = subprocess.run([ANSIBLE / "ansible", "all", "-i", source, "--list-hosts"], capture_output=True, text=True)
    expected = [line.strip() for line in listed.stdout.splitlines()[1:]]
    assert [host.name for host in load_inventory(source).hosts] == expected


def test_load_resolves_templates_from_group_vars_as_ansible_does(site: Inventory) -> None:
    _write(YAML)
    template = json.dumps({"msg": "IS={{ hostvars['zeta'].ansible_host }}"})
    command = [ANSIBLE / "ansible", "localhost", "-i", "inventory.yml", "-m", "debug", "-a", template]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    assert _host(site, "zeta").address == re.findall(r"IS=([\d.]+)", said)[0] == "10.0.0.3"


def test_load_groups_of_a_host_include_parents(site: Inventory) -> None:
    assert {host.name: host.groups for host in site.hosts} == {
        "lone": (),
        "zeta": ("gpu", "old"),
        "alpha": ("gpu", "old", "new"),
        "beta": ("gpu", "new"),
    }


def test_load_connection_variables_arrive(site: Inventory) -> None:
    alpha = _host(site, "alpha")
    assert (alpha.address, alpha.port, alpha.user, alpha.cards) == ("alpha", 2222, "ops", 8)
    assert (_host(site, "lone").port, _host(site, "lone").user) == (None, None)
    assert _host(site, "beta").address == "fe80::1%eth0"


def test_load_jump_host_in_a_groups_ssh_arguments_and_says_what_is_not_honoured() -> None:
    inventory = load_inventory(_write(INI, "hosts.ini"))
    assert _host(inventory, "node02").jump == "ops@bastion:2200"
    assert _host(inventory, "bastion").jump is None


def test_load_directory_with_host_vars() -> None:
    Path("site/host_vars").mkdir(parents=True)
    _write("all:\n  hosts:\n    a:\n", "site/hosts.yml")
    _write("gua_command: [/usr/bin/python3, -m, gua]\nansible_become: true\n", "site/host_vars/a.yml")
    (host,) = load_inventory("site").hosts
    assert (host.gua_command, host.become) == (("/usr/bin/python3", "-m", "gua"), True)


def test_load_limit_takes_ansible_patterns() -> None:
    source = _write(YAML)
    assert [host.name for host in load_inventory(source, limit="gpu:!old").hosts] == ["beta"]
    with pytest.raises(InventoryError, match="no host that matches --limit nowhere"):
        load_inventory(source, limit="nowhere")


def test_load_variables_that_vanish_or_fail_skip_their_host_only() -> None:
    text = """
all:
  hosts:
    good: {ansible_host: "{{ 'a' ~ 'b' }}"}
    undefined: {ansible_host: "{{ nowhere }}.x", gua_cards: 8}
    lookup: {ansible_port: "{{ lookup('file', '/no/such/file') }}"}
    omitted: {ansible_host: "{{ nowhere | default(omit) }}", ansible_user: "{{ hostvars.plain.ansible_host }}"}
    unsafe: {ansible_user: !unsafe "{{ literal }}"}
    plain: {ansible_host: 192.0.2.7}
"""
    inventory = load_inventory(_write(text))
    skipped = {host.name for host in inventory.hosts if host.skip_reason}
    assert skipped == {"undefined", "lookup"}
    reason = _host(inventory, "undefined").skip_reason
    assert reason == "ansible_host cannot be resolved: 'nowhere' is undefined"
    assert _host(inventory, "undefined").cards == 8
    assert _host(inventory, "good").address == "ab"
    assert (_host(inventory, "omitted").address, _host(inventory, "omitted").user) == ("omitted", "192.0.2.7")
    assert _host(inventory, "unsafe").user == "{{ literal }}"
    assert any("undefined is skipped" in warning for warning in inventory.warnings)


def test_load_inline_vault_without_its_password_skips_that_host_and_keeps_the_secret() -> None:
    Path("pw").write_text("x\n")
    encrypt = [ANSIBLE / "ansible-vault", "encrypt_string", "--vault-password-file", "pw", "s3cret", "--name", "v"]
    vaulted = subprocess.run(encrypt, capture_output=True, text=True).stdout.partition(": ")[2]
    text = f"all:\n  hosts:\n    a:\n      ansible_host: {vaulted}    b:\n".replace("\n          ", "\n        ")
    inventory = load_inventory(_write(text))
    assert "vault" in (_host(inventory, "a").skip_reason or "").lower()
    assert _host(inventory, "b").skip_reason is None


def test_load_vaulted_file_without_its_password_says_what_to_set() -> None:
    Path("group_vars").mkdir()
    Path("pw").write_text("x\n")
    _write("a: 1\n", "group_vars/all.yml")
    encrypt = [ANSIBLE / "ansible-vault", "encrypt", "--vault-password-file", "pw", "group_vars/all.yml"]
    subprocess.run(encrypt, check=True, capture_output=True)
    with pytest.raises(InventoryError, match="give --vault-password-file FILE"):
        load_inventory(_write("all:\n  hosts:\n    a:\n"))


def test_load_bare_lines_are_one_host_that_is_never_connected_to() -> None:
    inventory = load_inventory(_write("gpu:\n  hosts:\n    10.0.0.10\n    10.0.0.20\n"))
    (host,) = inventory.hosts
    assert "holds blanks" in (host.skip_reason or "")
    assert any("(in gpu)" in warning for warning in inventory.warnings)


def test_load_host_keys_with_null_values_are_good() -> None:
    assert len(load_inventory(_write("all:\n  hosts:\n    a:\n    b:\n")).hosts) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("all: {}\n", "holds no hosts"),
        ("all:\n  hosts:\n    - a\n    - b\n", r"holds no hosts.*\(Invalid .hosts. entry for .all. group"),
        ("all:\n  hosts: 5\n", r"holds no hosts.*\(Invalid .hosts. entry for .all. group"),
        ("all:\n  hosts:\n    a: [\n", r"\(\w.*(line 4|:4:1)"),
    ],
)
def test_load_inventory_without_hosts_is_one_clear_line(text: str, words: str) -> None:
    with pytest.raises(InventoryError, match=words) as caught:
        load_inventory(_write(text))
    assert "inventory.yml" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2


def test_load_missing_file_is_named() -> None:
    with pytest.raises(InventoryError, match=r"no inventory at nowhere\.yml \(--hosts\)"):
        load_inventory("nowhere.yml")


def test_load_list_of_names_needs_no_file() -> None:
    assert [host.name for host in load_inventory("a,b,").hosts] == ["a", "b"]


def test_load_executable_script_is_an_inventory() -> None:
    script = Path("dynamic.sh")
    script.write_text(
        '#!/bin/sh\necho \'{"gpu": {"hosts": ["d1"]}, "_meta": {"hostvars": {"d1": {"gua_cards": 4}}}}\'\n'
    )
    script.chmod(0o755)
    (host,) = load_inventory(str(script)).hosts
    assert (host.name, host.cards, host.groups) == ("d1", 4, ("gpu",))
