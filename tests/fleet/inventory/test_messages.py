from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from gua_fleet.errors import InventoryError
from gua_fleet.inventory.ansible_tools import split_messages
from gua_fleet.inventory.load import load_inventory

# As ansible-core 2.19 and 2.17 write them, folded at 79 columns.
NEW = """[WARNING]: Failed to parse inventory with 'yaml' plugin: YAML parsing failed:
This may be an issue with missing quotes.
Failed to parse inventory with 'yaml' plugin.

<<< caused by >>>

YAML parsing failed.
Origin: /x/hosts.yml:5:7

3     a:
4       ansible_password: hunter2
5      b: [
        ^ column 7

[WARNING]: Another
one
"""
OLD = """[WARNING]:  * Failed to parse /x/hosts.yml with yaml plugin: We were unable to
read either as JSON nor YAML: found unexpected end
The error appears to be in '/x/hosts.yml': line 5, column 7, but may
be elsewhere in the file depending on the exact syntax problem.
The offending line appears to be:

      ansible_password: hunter2
     b: [
      ^ here
[WARNING]: Another
one
"""


@pytest.mark.parametrize("stderr", [NEW, OLD], ids=["2.19", "2.17"])
def test_messages_are_lines_without_the_file_around_the_mistake(stderr: str) -> None:
    first, second = split_messages(stderr)
    assert "hunter2" not in first
    assert "5" in first  # where it is stays
    assert second == "[WARNING]: Another one"


def test_a_mistake_beside_a_password_does_not_show_it() -> None:
    Path("hosts.yml").write_text("all:\n  hosts:\n    a:\n      ansible_password: hunter2\n     b: [\n")
    with pytest.raises(InventoryError) as caught:
        load_inventory("hosts.yml")
    assert "hunter2" not in str(caught.value)
    # Before 2.19 Ansible names the line at which the mapping began, and not the one that does not fit into it.
    before = tuple(map(int, version("ansible-core").split(".")[:2])) < (2, 19)
    assert ("line 3, column 5" if before else ":5:") in str(caught.value)


def test_two_names_of_one_address_and_many_hosts_with_one_trouble_are_a_line_each() -> None:
    hosts = "".join(f"    n{number}: {{ansible_host: '{{{{ gone }}}}'}}\n" for number in range(9))
    Path("hosts.yml").write_text(
        "all:\n  hosts:\n" + hosts + "    x: {ansible_host: 192.0.2.1}\n    y: {ansible_host: 192.0.2.1}\n"
        "    z: {ansible_host: 192.0.2.1, ansible_port: 2222}\n"
    )
    assert load_inventory("hosts.yml").warnings == (
        "n0, n1, n2, n3, n4, n5 and 3 more are skipped: ansible_host cannot be resolved: 'gone' is undefined",
        "x, y have the same address 192.0.2.1: one machine under several names?",
    )


def test_a_host_in_several_groups_is_one_host_with_ansibles_value() -> None:
    Path("hosts.yml").write_text(
        "all:\n  children:\n    b: {hosts: {n: }, vars: {ansible_user: late}}\n"
        "    a: {hosts: {n: }, vars: {ansible_user: early}}\n"
    )
    (host,) = load_inventory("hosts.yml").hosts
    assert (host.user, set(host.groups)) == ("late", {"a", "b"})  # same depth: the last in the alphabet wins


def test_a_program_that_fails_and_a_plugin_that_is_not_there_are_named_and_no_other_parsers_guess() -> None:
    program = Path("cmdb.sh")
    program.write_text("#!/bin/sh\necho no answer >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(InventoryError, match=r"cmdb.sh holds no hosts: .*script .*(exit code 3|no answer)"):
        load_inventory("cmdb.sh")
    Path("cloud.yml").write_text("plugin: no.such.plugin\n")
    with pytest.raises(InventoryError, match=r"cloud.yml holds no hosts: .*unknown plugin 'no.such.plugin'"):
        load_inventory("cloud.yml")
