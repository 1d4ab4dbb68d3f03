"""Turns what the libraries raise into a host's outcome, with a line that a stranger can act on."""

from __future__ import annotations

from collections.abc import Sequence

import paramiko
from paramiko.auth_strategy import AuthFailure
from paramiko.ssh_exception import PartialAuthentication

from gua_fleet.errors import HostFailure
from gua_fleet.model import Outcome
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.target import Target

# Everything the two libraries and the operating system raise when a conversation fails.
FAILURES = (OSError, EOFError, paramiko.SSHException, HostFailure)
# What the library says when its own limits end a stage, at which the sweep's deadline may not have passed yet.
_NO_SESSION = "No existing session"
_TIMED_OUT = (_NO_SESSION, "Timeout opening channel", "Authentication timeout", "timed out")

# What it says of a try to log in at which the server hung up, and of those after it.
_ENDED = (_NO_SESSION, "transport shut down", "Too many authentication failures")


def translate(
    exc: BaseException, attempt: Attempt, target: Target, offered: Sequence[str], *, has_password: bool = False
) -> HostFailure:
    """The failure that `exc` means at the attempt's stage. offered: what was tried to be let in, in words."""
    if isinstance(exc, HostFailure):
        return exc
    if isinstance(exc, AuthFailure) and not attempt.cancelled:  # its words are those of all tries together
        return _not_let_in(exc, attempt, target, offered, has_password)
    if attempt.cancelled or _is_timeout(exc):
        return attempt.timeout()
    if isinstance(exc, paramiko.ssh_exception.IncompatiblePeer):
        return HostFailure(Outcome.UNREACHABLE, f"no common SSH algorithm, its server is too old: {exc}")
    if isinstance(exc, paramiko.ChannelException):
        return HostFailure(Outcome.UNREACHABLE, f"the host refuses a session: {exc.text}")
    if attempt.stage == "connect":
        busy = ", or takes no more log-ins just now" if is_refused_banner(exc) else ""
        detail = f"{target.address} port {target.port} does not speak SSH{busy}: {_why(exc)}"
        return HostFailure(Outcome.UNREACHABLE, detail)
    if attempt.stage == "exec" and isinstance(exc, paramiko.SSHException):  # else it is gone
        return HostFailure(Outcome.BAD_OUTPUT, f"the host refuses to run commands for {target.user}: {_why(exc)}")
    return HostFailure(Outcome.UNREACHABLE, f"the connection was lost at {attempt.stage}: {_why(exc)}")


def is_refused_banner(exc: BaseException) -> bool:
    """Whether the server hung up before it had said who it is, as sshd does beyond its MaxStartups."""
    if isinstance(exc, (ConnectionResetError, BrokenPipeError, EOFError)):
        return True
    behind = isinstance(exc.__context__, (ConnectionResetError, BrokenPipeError, EOFError))
    return isinstance(exc, paramiko.SSHException) and "protocol banner" in str(exc) and behind


def _is_timeout(exc: BaseException) -> bool:
    # A banner that did not come in time is told in the words of one that could not be read: the reason is behind it.
    if isinstance(exc, TimeoutError) or isinstance(exc.__context__, TimeoutError):
        return True
    return isinstance(exc, paramiko.SSHException) and any(words in str(exc) for words in _TIMED_OUT)


def _not_let_in(
    exc: AuthFailure, attempt: Attempt, target: Target, offered: Sequence[str], has_password: bool
) -> HostFailure:
    results = [pair.result for pair in exc.result]
    ended = next((place for place, result in enumerate(results) if _is_end(result)), None)
    tries = results if ended is None else results[: ended + 1]
    if any(_is_timeout(result) for result in tries if isinstance(result, Exception)):
        return attempt.timeout()
    tried = ", ".join(offered) or "no key: none is named, in an agent, or in ~/.ssh (for a password use --ask-pass)"
    taken = any(isinstance(result, PartialAuthentication) for result in results)
    allowed = next((r.allowed_types for r in reversed(results) if isinstance(r, _NAMES_METHODS)), ())
    if ended is not None and not taken and (not allowed or "publickey" in allowed):
        return _hung_up_on(target, offered[: ended + 1])
    wants = _wants(tuple(filter(None, allowed)), taken, has_password)
    detail = f"{target.user}@{target.address} was not let in; tried {tried}{f'; {wants}' if wants else ''}"
    return HostFailure(Outcome.AUTH_FAILED, detail)


def _is_end(result: object) -> bool:
    """Whether the connection was over after this try: whatever comes behind it was never tried."""
    return isinstance(result, (OSError, EOFError)) or (
        isinstance(result, paramiko.SSHException) and any(words in str(result) for words in _ENDED)
    )


def _hung_up_on(target: Target, tried: Sequence[str]) -> HostFailure:
    detail = f"{target.address} hung up at the log-in of {target.user}; tried {', '.join(tried)}"
    if len(tried) > 1:
        detail += (
            ": these may be too many for it (MaxAuthTries): name the right key with ansible_ssh_private_key_file and "
            "-o IdentitiesOnly=yes"
        )
    return HostFailure(Outcome.AUTH_FAILED, detail)


_NAMES_METHODS = (paramiko.BadAuthenticationType, PartialAuthentication)


def _wants(allowed: Sequence[str], key_taken: bool, has_password: bool) -> str | None:
    """What the server would let in, and what to do about it, in words."""
    if not allowed:
        return None
    if key_taken:
        return f"it wants {', '.join(allowed)} beside the key: a second factor typed in is not supported"
    if "password" in allowed and not has_password:
        return f"it takes {', '.join(allowed)}: for a password use --ask-pass"
    if all(method.startswith("gssapi") for method in allowed):
        return "it takes Kerberos (GSSAPI) alone, which is not supported: install a key there"
    if set(allowed) == {"keyboard-interactive"}:
        more = "" if has_password else ", a plain password goes with --ask-pass"
        return f"it asks at the keyboard: one-time passwords are not supported{more}"
    if set(allowed) == {"hostbased"}:
        return "it takes host-based log-in alone, which is not supported: install a key there"
    return f"it takes {', '.join(allowed)}"


def _why(exc: BaseException) -> str:
    return (
        str(exc).strip() or "it closed the connection" if not isinstance(exc, EOFError) else "it closed the connection"
    )
