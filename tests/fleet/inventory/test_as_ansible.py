"""Every host, address, user, port, jump and key is what Ansible itself would connect with."""

from __future__ import annotations

from pathlib import Path

import pytest

from gua_fleet.inventory.load import Selection, load_inventory
from gua_fleet.inventory.source import find_source
from tests.fleet.inventory.ansible_says import HAS_SSH, Way, ansible_says, we_say

pytestmark = pytest.mark.processes

YAML = {
    "hosts.yml": """
all:
  vars:
    domain: example.org
    ansible_user: "{{ admin | default('ops') }}"
    ansible_host: "{{ inventory_hostname }}.{{ rack }}.{{ domain }}"
    ansible_port: "{{ port_of_rack | default(22) }}"
  children:
    gpu:
      children:
        rack1:
          vars:
            rack: r1
            port_of_rack: "{{ 2200 + 1 }}"
            ansible_ssh_common_args: "-J {{ admin | default('hop') }}@bastion:2022"
          hosts:
            node[01:03]:
            node04: {ansible_host: 192.0.2.4, ansible_port: 22}
        rack2:
          vars: {rack: r2, ansible_ssh_private_key_file: ~/keys/rack2}
          hosts:
            odd[a:e:2]: {admin: root}
            node03: {rack: both}
    scattered:
      vars: {rack: r9, ansible_group_priority: 10, ansible_user: prior}
      hosts: {node01: , alone: {ansible_ssh_extra_args: "-l nobody -o ProxyCommand='ssh -W %h:%p gate' -i other"}}
""",
    "other": "",  # ssh leaves out a key that -i names and that is not there
    "group_vars/rack2/plain.yml": "ansible_port: 2299\n",
    "group_vars/rack2/more.yml": "admin: fromfile\n",
    "host_vars/node02.yml": 'ansible_host: "{{ hostvars.node04.ansible_host }}0"\n',
}
INI = {
    "hosts.ini": """
plain
withport:2200 ansible_user=x
six ansible_host=2001:db8::5 ansible_port=2201
old ansible_ssh_host=192.0.2.9 ansible_ssh_port=2202 ansible_ssh_user=deb ansible_ssh_private_key_file=/k/id
[web]
www[01:03].example.org
www02.example.org ansible_host=203.0.113.2
[db]
db-[a:b] ansible_ssh_common_args="-o ProxyJump=one,two -p 99"
[site:children]
web
db
[site:vars]
ansible_ssh_args=-o User=from_args -o IdentityFile=/from/args
[web:vars]
ansible_user={{ team }}_web
team=blue
""",
    "ansible.cfg": "[defaults]\nremote_user = configured\nremote_port = 2222\nprivate_key_file = /configured/key\n"
    "[ssh_connection]\nssh_common_args = -J cfg-jump\n",
}
SCRIPT = {
    "dynamic.sh": "#!/bin/sh\n"
    'echo \'{"g": {"hosts": ["d1", "d2"], "vars": {"ansible_port": 2203, "ansible_host": "{{ x }}.example.org"}},'
    ' "_meta": {"hostvars": {"d1": {"x": "one"}, "d2": {"x": "two", "ansible_port": "{{ 1 + 1 }}"}}}}\'\n',
    "more.yml": "all:\n  hosts:\n    d2: {ansible_user: more}\n    third:\n  vars: {x: three}\n",
}
DIRECTORY = {
    "site/1.yml": "all:\n  hosts:\n    p1: {index: 1}\n    p2: {index: 2}\n    here: {ansible_connection: local}\n",
    "site/2.constructed.yml": "plugin: ansible.builtin.constructed\nstrict: false\n"
    "compose: {ansible_host: inventory_hostname ~ '.example.org', ansible_port: 2200 + index}\n"
    "groups: {second: index == 2}\n",
    "site/group_vars/second.yml": "ansible_user: '{{ group_names | first }}'\n",
}


def _lay_out(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
        if text.startswith("#!"):
            Path(name).chmod(0o755)


def _ours(inventories: list[str], selection: Selection) -> dict[str, Way]:
    hosts = load_inventory(find_source(inventories), selection=selection).hosts
    assert [(host.name, host.skip_reason) for host in hosts if host.skip_reason] == []
    return {host.name: we_say(host) for host in hosts if host.connection == "ssh"}


@pytest.mark.skipif(not HAS_SSH, reason="no OpenSSH client, which says what ssh makes of arguments")
@pytest.mark.parametrize(
    ("files", "inventories", "selection", "names"),
    [
        (YAML, ["hosts.yml"], Selection(), {"node01", "node02", "node03", "node04", "odda", "oddc", "odde", "alone"}),
        (YAML, ["hosts.yml"], Selection("gpu:!rack2:&scattered", ("admin=extra", '{"rack": "e"}')), {"node01"}),
        (
            INI,
            ["hosts.ini"],
            Selection(),
            {"plain", "withport", "six", "old", "db-a", "db-b", *(f"www0{n}.example.org" for n in (1, 2, 3))},
        ),
        (SCRIPT, ["dynamic.sh", "more.yml", "list1,list2"], Selection(), {"d1", "d2", "third", "list1", "list2"}),
        (DIRECTORY, ["site"], Selection(), {"p1", "p2"}),
        (
            {**YAML, "only": "odda\nnode0*\n"},
            ["hosts.yml"],
            Selection("@only"),
            {"odda", *(f"node0{n}" for n in "1234")},
        ),
    ],
    ids=["yaml", "yaml-limit-extra", "ini-and-ansible.cfg", "script-and-more", "directory-and-plugin", "limit-file"],
)
def test_each_host_is_reached_as_ansible_would(
    files: dict[str, str], inventories: list[str], selection: Selection, names: set[str], tmp_path: Path
) -> None:
    _lay_out(files)
    ours = _ours(inventories, selection)
    assert set(ours) == names
    arguments = [word for name in inventories for word in ("-i", name)] + list(selection.arguments())
    assert ours == ansible_says(tmp_path, arguments)
