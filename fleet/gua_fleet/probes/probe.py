"""One question to an agent: the arguments that ask it, and how its answer is read. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gua.errors import FrameError
from gua.frames import NO_FRAME, unwrap_document
from gua_fleet.model import Document, Host, Outcome
from gua_fleet.probes.answer import Answer
from gua_fleet.probes.remote_command import DEFAULT_AGENT
from gua_fleet.probes.shape import Misshapen, check_shape
from gua_fleet.show import one_line

_ERROR_OUTCOMES = {
    "database_missing": Outcome.NO_HISTORY,
    "no_gpu": Outcome.NO_GPU,
    "paused": Outcome.PAUSED,
    "database_forbidden": Outcome.NEEDS_PRIVILEGE,
}
_NOT_FOUND, _NOT_EXECUTABLE, _TIMED_OUT, _KILLED = 127, 126, 124, 137
_SIGNALLED = -1  # SSH gives no exit status for a command that a signal ended; `timeout` dies of the same one

# Of a line that is quoted, more than is ever shown.
_LINE_BYTES = 4096
_CURE = "; ask again, or run the agent there by hand to see what it prints"


@dataclass(frozen=True)
class Reading:
    """What an answer means. document is set exactly when the outcome is OK; other_major: see HostResult."""

    outcome: Outcome
    detail: str | None = None
    document: Document | None = None
    other_major: str | None = None


@dataclass(frozen=True)
class Probe:
    """name: of the fleet command. schema: of the expected document, with its major number (`gua.report/1`).

    arguments: after `gua`. writes: runs as the agent's own user through sudo where the inventory says become.
    doubt: given a document of the right shape, why what it says cannot be, or None.
    """

    name: str
    schema: str
    arguments: tuple[str, ...]
    writes: bool = False
    doubt: Callable[[Document], str | None] = lambda document: None

    def argv(self, nonce: str) -> tuple[str, ...]:
        """The arguments after `gua`, the answer framed with `nonce`."""
        return (*self.arguments, "--frame", nonce)

    def interpret(self, host: Host, answer: Answer, nonce: str) -> Reading:
        """What `answer` means. Only a complete frame with the right schema is ever OK, whatever the exit status."""
        try:
            document = json.loads(unwrap_document(answer.stdout, nonce), parse_constant=_no_number)
        except FrameError as exc:
            return self._unframed(host, answer, str(exc))
        except (ValueError, RecursionError):  # the latter: nested beyond reason
            return Reading(Outcome.BAD_OUTPUT, "the agent's document is not JSON")
        return self._framed(document)

    def _framed(self, document: Any) -> Reading:
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema == "gua.error/1":
            message = one_line(str(document.get("message", "")))
            return Reading(_ERROR_OUTCOMES.get(str(document.get("code")), Outcome.AGENT_ERROR), message)
        if schema == self.schema:
            return self._expected(document)
        return self._mismatch(one_line(str(schema)), document)

    def _mismatch(self, got: str, document: Any) -> Reading:
        about = document.get("host") if isinstance(document, dict) else None
        version = about.get("agent_version") if isinstance(about, dict) else None
        runs = f" (its agent is version {one_line(str(version))})" if version else ""
        if _is_of_other_major(got, self.schema):
            detail = f"answers with {got}, this gua-fleet reads {self.schema}{runs}: bring both to one version"
            return Reading(Outcome.BAD_OUTPUT, detail, other_major=got)
        return Reading(Outcome.BAD_OUTPUT, f"answers with {got} instead of {self.schema}{runs}")

    def _expected(self, document: Document) -> Reading:
        """A document of the right name: believed when its shape and what it says are possible."""
        try:
            check_shape(document, self.schema)
        except Misshapen as exc:
            return Reading(
                Outcome.BAD_OUTPUT, f"the document is not what {self.schema} promises: {exc}; upgrade the agent there"
            )
        problem = self.doubt(document)
        return Reading(Outcome.BAD_OUTPUT, problem) if problem else Reading(Outcome.OK, None, document)

    def _unframed(self, host: Host, answer: Answer, why: str) -> Reading:
        """An answer without a usable frame: who spoke instead of the agent?"""
        framed = why != NO_FRAME  # then what stands last on stdout is a piece of the frame, and says nothing
        said = one_line(_last_line(answer.stderr) or ("" if framed else _last_line(answer.stdout)))
        quoted = f": {said}" if said else ""
        if self.writes and host.become and answer.exit_status in (1, _NOT_FOUND) and _is_sudo(answer):
            return Reading(Outcome.NEEDS_PRIVILEGE, f"sudo to the agent's user was refused{quoted}")
        if answer.exit_status == _NOT_FOUND:
            return Reading(Outcome.AGENT_MISSING, _missing(host, said))
        if answer.exit_status == _NOT_EXECUTABLE:
            return Reading(Outcome.AGENT_MISSING, f"the agent cannot be executed{quoted}")
        if answer.capped:
            return Reading(Outcome.BAD_OUTPUT, f"the answer is too long: stopped reading{_CURE}")
        if answer.exit_status == _TIMED_OUT:
            return Reading(Outcome.TIMEOUT, "the agent did not finish in time")
        if answer.exit_status in (_KILLED, _SIGNALLED):
            return Reading(Outcome.AGENT_ERROR, f"the agent was killed there (out of memory?){quoted}")
        if answer.exit_status == 0 or framed:
            return Reading(Outcome.BAD_OUTPUT, f"{why}{quoted}{_CURE if framed else ''}")
        if _last_line(answer.stderr):
            return Reading(Outcome.AGENT_ERROR, f"exit status {answer.exit_status}{quoted}")
        return Reading(Outcome.BAD_OUTPUT, f"{why}, exit status {answer.exit_status}{quoted}")


def _is_of_other_major(got: str, wanted: str) -> bool:
    name, _, major = got.rpartition("/")
    return name == wanted.rpartition("/")[0] and major.isascii() and major.isdigit()


def _no_number(word: str) -> None:
    """Python reads NaN and Infinity, which are no JSON and would make ours unreadable."""
    raise ValueError(word)


def _missing(host: Host, said: str) -> str:
    agent = host.gua_command[0] if host.gua_command else DEFAULT_AGENT
    if "timeout" in said and agent not in said:
        return f"`timeout` of coreutils is missing there: {said}"
    where = agent if host.gua_command else f"{agent} or on PATH"
    return f"no agent at {where}: deploy it with ansible-playbook deploy.yml, or set gua_command"


def _is_sudo(answer: Answer) -> bool:
    """Its words are translated on some hosts, but an agent that runs frames its answer or signs its last words."""
    last = _last_line(answer.stderr)
    return bool(last) and ("sudo" in last or (answer.exit_status == 1 and not last.startswith("gua:")))


def _last_line(output: bytes) -> str:
    """Its beginning, where it is long. Nothing else is decoded: it may be the end of a flood."""
    whole = output.rstrip()
    start = whole.rfind(b"\n") + 1
    lines = whole[start : start + _LINE_BYTES].decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
