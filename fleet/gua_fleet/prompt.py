"""Asks whoever sits at the terminal, before any host is asked, and never when nobody sits there."""

from __future__ import annotations

import getpass
import sys

from gua_fleet.errors import FleetError
from gua_fleet.secrets import Secret


class CannotAsk(FleetError):
    """A secret is needed, and there is nobody at a terminal to type it."""


def somebody_is_there() -> bool:
    """Whether a person sits at the terminal and could be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def ask_secret(prompt: str, otherwise: str) -> Secret:
    """What is typed at the terminal, unseen. otherwise: what to do where there is no terminal, for CannotAsk."""
    if not somebody_is_there():
        raise CannotAsk(f"{prompt}: there is no terminal to ask at; {otherwise}")
    try:
        return Secret(getpass.getpass(f"{prompt}: "))
    except EOFError as exc:
        raise CannotAsk(f"{prompt}: nothing was typed; {otherwise}") from exc
