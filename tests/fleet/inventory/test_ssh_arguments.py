from __future__ import annotations

import pytest

from gua_fleet.inventory.ssh_arguments import parse_ssh_arguments


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("-J jump", {"proxyjump": "jump", "proxycommand": "none"}),
        ("-Jjump", {"proxyjump": "jump", "proxycommand": "none"}),
        ("-o ProxyJump=jump", {"proxyjump": "jump", "proxycommand": "none"}),
        ("-oProxyJump=jump", {"proxyjump": "jump", "proxycommand": "none"}),
        ("-o 'ProxyJump jump'", {"proxyjump": "jump", "proxycommand": "none"}),
        ("-p2222", {"port": "2222"}),
        ("-4Avp 22", {"addressfamily": "inet", "port": "22"}),
        ("-i ~/key -i other", {"identityfile": "~/key"}),
        ("-l alice -o User=bob", {"user": "alice"}),
        ("-F cfg -C", {"-F": "cfg"}),
        ("-o 'UserKnownHostsFile = \"/a b/c\"'", {"userknownhostsfile": "/a b/c"}),
        (
            "-o ProxyCommand='ssh -W %h:%p -q b' -J x",
            {"proxycommand": "ssh -W %h:%p -q b", "proxyjump": "none"},
        ),
        ("", {}),
    ],
)
def test_parse_reads_what_ssh_reads(text: str, options: dict[str, str]) -> None:
    assert dict(parse_ssh_arguments(text).options) == options


def test_parse_what_means_nothing_here_is_kept_for_a_warning() -> None:
    assert parse_ssh_arguments("-D 1080 stray -L1:b:2").unknown == ("-D 1080", "stray", "-L 1:b:2")


def test_parse_open_quotes_are_an_error() -> None:
    with pytest.raises(ValueError, match="quotation"):
        parse_ssh_arguments("-o 'open")
