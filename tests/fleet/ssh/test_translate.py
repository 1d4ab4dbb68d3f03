from __future__ import annotations

import inspect

import paramiko
import paramiko.ssh_exception
import pytest
from paramiko.auth_strategy import AuthFailure, AuthResult

from gua_fleet.model import Host, Outcome, Stage
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.target import Target, target_from_options
from gua_fleet.ssh.translate import translate

LIBRARY = [
    kind
    for _, kind in inspect.getmembers(paramiko.ssh_exception, inspect.isclass)
    if issubclass(kind, Exception) and kind.__module__ == "paramiko.ssh_exception"
]

# What those of the library's errors are made of that take more than a message.
KEY = paramiko.ECDSAKey.generate()
ARGUMENTS: dict[str, tuple[object, ...]] = {
    "BadAuthenticationType": ("some words", ["password"]),
    "PartialAuthentication": (["password"],),
    "ChannelException": (1, "some words"),
    "BadHostKeyException": ("n", KEY, KEY),
    "ProxyCommandFailure": ("a command", "some words"),
    "NoValidConnectionsError": ({("192.0.2.1", 22): OSError("some words")},),
}


def _target() -> Target:
    return target_from_options(Host("n", "n"), {"user": ["ops"]})


def _attempt(stage: Stage) -> Attempt:
    attempt = Attempt(Host("n", "n"), 5)
    attempt.stage = stage
    return attempt


@pytest.mark.parametrize("kind", LIBRARY)
@pytest.mark.parametrize("stage", ["connect", "auth", "open", "exec", "output"])
def test_translate_every_error_of_the_library_has_a_line(kind: type[Exception], stage: Stage) -> None:
    error = kind(*ARGUMENTS.get(kind.__name__, ("some words",)))
    failure = translate(error, _attempt(stage), _target(), [])
    assert failure.detail
    assert "\n" not in failure.detail


@pytest.mark.parametrize("words", ["No existing session", "Timeout opening channel.", "Authentication timeout."])
def test_translate_the_librarys_own_limits_are_timeouts(words: str) -> None:
    failure = translate(paramiko.SSHException(words), _attempt("open"), _target(), [])
    assert (failure.outcome, failure.stage) == (Outcome.TIMEOUT, "open")


def test_translate_banner_that_did_not_come_in_time_is_a_timeout() -> None:
    """Which of the two limits ends the wait is a matter of luck, and the words of this one hide that it was one."""
    try:
        try:
            raise TimeoutError
        except TimeoutError as exc:
            raise paramiko.SSHException("Error reading SSH protocol banner" + str(exc))  # noqa: B904 - as the library
    except paramiko.SSHException as exc:
        failure = translate(exc, _attempt("connect"), _target(), [])
    assert (failure.outcome, failure.stage) == (Outcome.TIMEOUT, "connect")


def test_timeout_before_the_deadline_says_how_long_it_was_waited() -> None:
    attempt = Attempt(Host("n", "n"), 20)
    attempt.started_s -= 10.04
    assert attempt.timeout().detail == "no SSH conversation came about within 10 s"
    attempt.started_s -= 10
    assert attempt.timeout().detail == "no SSH conversation came about within 20 s"


def test_translate_after_cancelling_everything_is_a_timeout() -> None:
    attempt = _attempt("exec")
    attempt.cancel()
    assert translate(EOFError(), attempt, _target(), []).outcome is Outcome.TIMEOUT


def test_translate_refused_login_says_what_the_host_takes() -> None:
    result = AuthResult(strategy=None)
    refused = paramiko.BadAuthenticationType("no", ["password"])
    result.append(type("Pair", (), {"source": None, "result": refused})())
    failure = translate(AuthFailure(result=result), _attempt("auth"), _target(), ["/k"])
    assert failure.outcome is Outcome.AUTH_FAILED
    assert failure.detail == "ops@n was not let in; tried /k; it takes password: for a password use --ask-pass"
