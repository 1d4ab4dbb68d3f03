"""Turns what the libraries raise into a host's outcome, with a line that a stranger can act on."""

from __future__ import annotations

import paramiko
from paramiko.auth_strategy import AuthFailure

from gua_fleet.errors import HostFailure
from gua_fleet.model import Outcome
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.target import Target

# What the library says when its own limits end a stage, at which the sweep's deadline may not have passed yet.
_TIMED_OUT = ("No existing session", "Timeout opening channel", "Authentication timeout", "timed out")


def translate(exc: Exception, attempt: Attempt, target: Target, offered: list[str]) -> HostFailure:
    """The failure that `exc` means at the attempt's stage. offered: the keys that were tried, in words."""
    if isinstance(exc, HostFailure):
        return exc
    if attempt.cancelled or _is_timeout(exc):
        return attempt.timeout()
    if isinstance(exc, AuthFailure):
        return _not_let_in(exc, attempt, target, offered)
    if isinstance(exc, paramiko.ssh_exception.IncompatiblePeer):
        return HostFailure(Outcome.UNREACHABLE, f"no common SSH algorithm, its server is too old: {exc}")
    if isinstance(exc, paramiko.ChannelException):
        return HostFailure(Outcome.UNREACHABLE, f"the host refuses a session: {exc.text}")
    if attempt.stage == "connect":
        return HostFailure(Outcome.UNREACHABLE, f"{target.address} port {target.port} does not speak SSH: {_why(exc)}")
    if attempt.stage == "exec":
        return HostFailure(Outcome.BAD_OUTPUT, f"the host refuses to run commands for {target.user}: {_why(exc)}")
    return HostFailure(Outcome.UNREACHABLE, f"the connection was lost at {attempt.stage}: {_why(exc)}")


def _is_timeout(exc: BaseException) -> bool:
    # A banner that did not come in time is told in the words of one that could not be read: the reason is behind it.
    if isinstance(exc, TimeoutError) or isinstance(exc.__context__, TimeoutError):
        return True
    return isinstance(exc, paramiko.SSHException) and any(words in str(exc) for words in _TIMED_OUT)


def _not_let_in(exc: AuthFailure, attempt: Attempt, target: Target, offered: list[str]) -> HostFailure:
    results = [pair.result for pair in exc.result]
    if any(_is_timeout(result) for result in results if isinstance(result, Exception)):
        return attempt.timeout()
    tried = ", ".join(offered) or "no key: none is named, in an agent, or in ~/.ssh"
    allowed = next((r.allowed_types for r in results if isinstance(r, paramiko.BadAuthenticationType)), None)
    takes = f"; it takes {', '.join(allowed)}" if allowed and any(allowed) else ""
    return HostFailure(Outcome.AUTH_FAILED, f"{target.user}@{target.address} was not let in; tried {tried}{takes}")


def _why(exc: Exception) -> str:
    return (
        str(exc).strip() or "it closed the connection" if not isinstance(exc, EOFError) else "it closed the connection"
    )
