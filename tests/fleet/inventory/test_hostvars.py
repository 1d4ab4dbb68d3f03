from __future__ import annotations

from typing import Any

import pytest

from gua_fleet.inventory.hostvars import host_from_variables, not_honoured
from gua_fleet.secrets import Secret


def _skip(name: str, **variables: Any) -> str:
    return host_from_variables(name, variables).skip_reason or ""


def test_host_without_variables_is_its_name() -> None:
    host = host_from_variables("gpu1", {})
    assert (host.address, host.port, host.user, host.connection, host.skip_reason) == ("gpu1", None, None, "ssh", None)


def test_host_that_is_skipped_keeps_the_cards_it_is_known_to_have() -> None:
    host = host_from_variables("n", {"ansible_port": "none", "gua_cards": 8})
    assert (host.skip_reason, host.cards) == ("'none' is not a port number", 8)
    assert host_from_variables("n", {"gua_cards": "many"}).cards is None


def test_host_old_variable_names_win_as_in_ansible() -> None:
    host = host_from_variables("n", {"ansible_host": "a", "ansible_ssh_host": "b", "ansible_ssh_user": "u"})
    assert (host.address, host.user) == ("b", "u")


@pytest.mark.parametrize(("given", "address"), [("[::1]", "::1"), ("2001:db8::5", "2001:db8::5")])
def test_host_ipv6_with_and_without_brackets(given: str, address: str) -> None:
    assert host_from_variables("n", {"ansible_host": given}).address == address


@pytest.mark.parametrize("name", ["a b", "node[1:3", "{{ x }}", "-oProxyCommand=x", "a;b", "$(x)", "u@h", "a\nb", "q'"])
def test_host_name_or_address_that_is_none_is_never_connected_to(name: str) -> None:
    assert _skip(name)
    assert _skip("n", ansible_host=name)


def test_host_precedence_is_that_of_ansibles_ssh_command_line() -> None:
    variables = {
        "ansible_ssh_args": "-o User=from_args",
        "ansible_user": "from_variable",
        "ansible_port": 1,
        "ansible_ssh_common_args": "-o User=from_common -p 2 -i common_key",
        "ansible_ssh_extra_args": "-i extra_key -J jump",
    }
    host = host_from_variables("n", variables)
    assert (host.user, host.port, host.identity_file, host.jump) == ("from_args", 1, "common_key", "jump")


@pytest.mark.parametrize(
    ("connection", "kind"),
    [("local", "local"), ("ansible.builtin.local", "local"), ("smart", "ssh"), ("ansible.builtin.ssh", "ssh")],
)
def test_host_connection_kinds(connection: str, kind: str) -> None:
    assert host_from_variables("n", {"ansible_connection": connection}).connection == kind


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ansible_connection": "docker"}, "'docker' is not supported"),
        ({"ansible_port": "ssh"}, "'ssh' is not a port number"),
        ({"ansible_port": 70000}, "not a port number"),
        ({"ansible_host": {"__ansible_vault": "x"}}, "not decrypted"),
        ({"ansible_user": ["a"]}, "ansible_user must be text"),
        ({"ansible_become_user": "-s"}, "cannot be a user's name"),
        ({"ansible_become": "perhaps"}, "ansible_become must be true or false"),
        ({"ansible_ssh_common_args": "-o 'open"}, "ansible_ssh_common_args cannot be read"),
        ({"gua_command": "gua --db /x"}, "must be an absolute path or a list"),
        ({"gua_command": ["a", "b\n"]}, "must be an absolute path or a list"),
        ({"gua_cards": "many"}, "gua_cards must be a whole number"),
    ],
)
def test_host_senseless_variable_is_a_reason_to_skip(variables: dict[str, Any], words: str) -> None:
    assert words in _skip("n", **variables)


@pytest.mark.parametrize(
    ("value", "reason"), [(True, "gua_maintenance is set"), ("new fans", "new fans"), (False, None), ("no", None)]
)
def test_host_maintenance(value: object, reason: str | None) -> None:
    assert host_from_variables("n", {"gua_maintenance": value}).maintenance == reason


def test_host_command_path_is_one_argument() -> None:
    assert host_from_variables("n", {"gua_command": "/opt/my tools/gua"}).gua_command == ("/opt/my tools/gua",)


def test_host_cards_zero_is_a_number() -> None:
    assert host_from_variables("n", {"gua_cards": 0}).cards == 0


def test_ignored_arguments_are_named_once() -> None:
    variables = {
        "ansible_ssh_args": "-C -o ControlMaster=auto",
        "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o Ciphers=x -L 1:a:2 stray",
        "ansible_ssh_extra_args": "-o Ciphers=y",
    }
    ignored = [sentence.removeprefix("ssh argument ").split()[0] for sentence in not_honoured(variables)]
    assert ignored == ["-L", "stray", "ciphers"]


def test_not_honoured_are_checks_switched_off_and_other_ways_to_become_root() -> None:
    assert not_honoured({"ansible_become_method": "su"}) == ()
    (sentence,) = not_honoured({"ansible_become": True, "ansible_become_method": "su"})
    assert "ansible_become_method su is not supported (sudo is)" in sentence
    assert not host_from_variables("n", {"ansible_become": True, "ansible_become_method": "su"}).become
    assert "host keys are always checked" in not_honoured({"ansible_host_key_checking": False})[0]


def test_host_secrets_are_held_and_never_shown() -> None:
    variables = {"ansible_ssh_pass": "hunter2", "ansible_become_password": "hunter3", "ansible_password": "no"}
    host = host_from_variables("n", variables)
    assert host.password == Secret("hunter2")
    assert host.become_password == Secret("hunter3")
    for shown in (repr(host), str(host.password), f"{host.password}", "%s" % host.password):  # noqa: UP031
        assert "hunter" not in shown
    assert "hunter" not in _skip("n", ansible_password=["hunter2"])


@pytest.mark.parametrize(("user", "become_user"), [(None, None), ("root", None), ("svc", "svc")])
def test_host_become_user(user: str | None, become_user: str | None) -> None:
    assert host_from_variables("n", {"ansible_become": True, "ansible_become_user": user}).become_user == become_user
