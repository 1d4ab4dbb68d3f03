"""A board that lab hosts reach over TLS, as they would a real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.board import Authority, Board, running_board
from tests.lab.harness import Lab

NAME = "board.lab"
BUNDLE = "/etc/gua-authority.pem"
# What the agent must be told of the test's own authority.
ENVIRONMENT = {"REQUESTS_CA_BUNDLE": BUNDLE}


@contextmanager
def lab_board(lab: Lab, folder: Path) -> Iterator[Board]:
    """A board that all hosts of the lab know by name and trust."""
    authority = Authority(folder)
    for host in lab.hosts.values():
        with host.path("/etc/hosts").open("a") as known:
            known.write(f"{lab.address} {NAME}\n")
        host.path(BUNDLE).write_bytes(authority.bundle.read_bytes())
    with running_board(context=authority.server_context(NAME), address=lab.address, name=NAME) as board:
        yield board
