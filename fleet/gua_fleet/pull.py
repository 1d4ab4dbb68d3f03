"""Copies new history of every host into the store: an export is read as it comes, and put in chunk by chunk."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gua.errors import FrameError
from gua.export.reading import open_export
from gua.export.records import is_header
from gua_fleet.errors import HostFailure, StoreUnusable
from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.probes.answer import Answer
from gua_fleet.probes.probe import Probe, Reading
from gua_fleet.probes.pull import pull_probe
from gua_fleet.probes.remote_command import agent_argv
from gua_fleet.pull_notes import Facts, notes_of
from gua_fleet.show import one_line
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.line import Line
from gua_fleet.ssh.settings import SweepSettings
from gua_fleet.ssh.stream import ByteStream
from gua_fleet.ssh.sweep import Progress, Sweep
from gua_fleet.ssh.talk import Talk, failed
from gua_fleet.store.database import is_hosts_fault, store_errors, told
from gua_fleet.store.header import believed_header
from gua_fleet.store.intake import AskAgain, Intake
from gua_fleet.store.place import Place
from gua_fleet.store.session import Session
from gua_fleet.store.shape import NotBelieved

_NOISE_BYTES = 1_000_000
_REST_BYTES = 64 << 10
# A database that turns out to be another one is asked once more; one that changes all the time is not.
_MOST_ASKS = 3
# For one chunk: the store's own patience, and that of all hosts whose turn comes before.
_OWN_WORK_S = 1200.0
# The host's own guard over its agent, in times of what it may take: our work comes on top of that.
_AT_MOST = 6

Result = TypeVar("Result")


@dataclass(frozen=True)
class PullSettings:
    """raw_ms: how long raw ticks are kept; None: for ever. longest_s: most time for one host. most_bytes, most_rows:
    of one host in one pull, by which a host that sends without end is told; the next pull goes on from there.
    """

    rollups_only: bool = False
    raw_ms: int | None = 30 * 86_400_000
    longest_s: float = 600.0
    most_bytes: int = 256 << 20
    most_rows: int = 50_000_000


class _Enough(Exception):
    """A host sent more than it may in one pull."""


@dataclass(frozen=True)
class Pulled:
    """results: one per host, in order; documents are `Facts.document()`. facts: by host name, also of those that
    failed under way. store_error: what went wrong with the store itself, None where nothing did.
    """

    results: tuple[HostResult, ...]
    facts: dict[str, Facts]
    store_error: StoreUnusable | None


def pull_hosts(
    hosts: Sequence[Host],
    session: Session,
    place: Place,
    settings: PullSettings,
    sweep_settings: SweepSettings,
    *,
    progress: Progress | None = None,
    notice: Callable[[str], object] = lambda line: None,
) -> Pulled:
    """Pull every host that is not left out. Raises FleetError as `sweep` does, before anybody is asked."""
    talk = PullTalk(hosts, sweep_settings, Puller(session, place, settings))
    talk.refuse_locked_keys()
    results = Sweep(hosts, pull_probe(0, rollups_only=False), sweep_settings, talk, progress).run()
    for line in talk.notes(results):
        notice(line)
    return Pulled(results, talk.puller.facts, talk.puller.failed)


class Puller:
    """What the pulls of a sweep share. One chunk at a time is taken apart and put in, whatever the number of hosts:
    that bounds the memory, and neither Python nor SQLite would do two at once.
    """

    def __init__(self, session: Session, place: Place, settings: PullSettings) -> None:
        self.session = session
        self.place = place
        self.settings = settings
        self.turn = threading.Lock()
        self.facts: dict[str, Facts] = {}
        self.failed: StoreUnusable | None = None

    def in_store(self, work: Callable[[], Result]) -> Result:
        """What `work` gives; it is done again where a server was started anew. Raises StoreUnusable, and what it does.

        Once the store has failed, everybody is told so at once.
        """
        with self.turn:
            if self.failed is not None:
                raise self.failed
            try:
                with store_errors(self.place):
                    return self._believed(work)
            except StoreUnusable as exc:
                self.failed = exc
                raise

    def _believed(self, work: Callable[[], Result]) -> Result:
        """A value that no column takes is the fault of the host that sent it, and of nobody else."""
        try:
            return self.session.again(work)
        except Exception as exc:
            if is_hosts_fault(exc):
                raise NotBelieved(f"its rows cannot be stored: {told(self.place, exc)}") from exc
            raise


class PullTalk(Talk):
    """Talks to one host until its history is here, and tells what became of that."""

    def __init__(self, hosts: Sequence[Host], settings: SweepSettings, puller: Puller) -> None:
        super().__init__(hosts, settings)
        self.puller = puller

    def _converse(self, attempt: Attempt, probe: Probe, line: Line | None) -> HostResult:
        pull = HostPull(attempt, self, self.puller)
        try:
            reading = pull.run()
        except HostFailure as failure:
            return failed(attempt, HostFailure(failure.outcome, failure.detail + pull.kept(), failure.stage))
        stage = attempt.stage if reading.outcome is Outcome.TIMEOUT else None
        detail = reading.detail
        if reading.outcome is not Outcome.OK and detail is not None:
            detail += pull.kept()
        answered_at_ms = round(time.time() * 1000)
        return HostResult(
            attempt.host, reading.outcome, detail, reading.document, stage, attempt.elapsed_s(), answered_at_ms
        )


class HostPull:
    """The pull of one host, in its own thread."""

    def __init__(self, attempt: Attempt, talk: Talk, puller: Puller) -> None:
        self._attempt = attempt
        self._talk = talk
        self._puller = puller
        self._settings = puller.settings
        self._facts = Facts()
        puller.facts[attempt.host.name] = self._facts
        self._intake = Intake(puller.session, attempt.host.name, rollups_only=puller.settings.rollups_only)
        attempt.last_s = attempt.started_s + max(attempt.timeout_s, puller.settings.longest_s)
        self._nonce, self._since_rev, self._whole = "", 0, False
        self._said = b""
        self._cut: FrameError | None = None

    def kept(self) -> str:
        """What to add to a failure: that nothing is lost."""
        rows = self._intake.taken.rows
        return f"; the {rows:,} rows before it are kept, the next pull goes on from there" if rows else ""

    def run(self) -> Reading:
        """What became of it. Raises HostFailure."""
        for _ in range(_MOST_ASKS):
            try:
                return self._ask()
            except AskAgain:
                self._attempt.put_off(self._attempt.timeout_s)
            except NotBelieved as exc:
                return Reading(Outcome.BAD_OUTPUT, str(exc))
            except _Enough as exc:
                return Reading(Outcome.BAD_OUTPUT, str(exc))
            except StoreUnusable as exc:
                return Reading(Outcome.STORE_FAILED, str(exc))
        return Reading(Outcome.BAD_OUTPUT, "its database is another one each time it is asked")

    def _ask(self) -> Reading:
        since_rev = self._in_store(self._intake.since_rev)
        probe = pull_probe(since_rev, rollups_only=self._settings.rollups_only)
        self._nonce, self._said, self._cut = secrets.token_hex(16), b"", None
        self._since_rev, self._whole = since_rev, False
        argv = agent_argv(
            self._attempt.host,
            probe.argv(self._nonce),
            limit_s=_AT_MOST * self._settings.longest_s,
            as_agent_user=False,
        )
        answer = self._talk.stream(self._attempt, argv, self._consume)
        return self._judge(probe, answer)

    def _judge(self, probe: Probe, answer: Answer) -> Reading:
        if self._whole:
            self._facts.notes = self._in_store(lambda: notes_of(self._puller.session, self._intake))
            return Reading(Outcome.OK, "; ".join(self._facts.notes) or None, self._facts.document())
        said = replace(answer, stdout=self._said)
        reading = probe.interpret(self._attempt.host, said, self._nonce)
        if self._cut is not None and reading.outcome in (Outcome.BAD_OUTPUT, Outcome.OK):
            return Reading(Outcome.BAD_OUTPUT, str(self._cut))
        return reading

    def _consume(self, stream: ByteStream) -> None:
        """Read one export to its end, or as far as it is good."""
        before = self._facts.bytes
        try:
            line = self._first_line(stream)
            if line is not None:
                self._take_in(stream, line, before)
        except FrameError as exc:
            self._cut = exc
            self._said = stream.read(_REST_BYTES)  # where the agent failed under way, its error stands there
        finally:
            self._facts.bytes = before + stream.taken

    def _first_line(self, stream: ByteStream) -> bytes | None:
        """The line an export begins with; None where there is none, and what stood there instead is in `_said`."""
        said = bytearray()
        while line := stream.readline(_NOISE_BYTES):
            if is_header(line, self._nonce):
                return line
            said += line
            if len(said) > _NOISE_BYTES:
                first = one_line(said[:200].decode("utf-8", "replace"))
                raise HostFailure(Outcome.BAD_OUTPUT, f"the answer holds no export, and does not end: {first}")
        self._said = bytes(said)
        return None

    def _take_in(self, stream: ByteStream, line: bytes, before: int) -> None:
        fields, chunks = open_export(stream, line, self._nonce)
        header = believed_header(fields, self._since_rev)
        if not header.store_id:
            raise HostFailure(Outcome.NO_HISTORY, "its database is there, and nothing was ever recorded in it")
        intake, settings, facts = self._intake, self._settings, self._facts
        self._in_store(lambda: intake.begin(header, round(time.time() * 1000)))
        facts.begun(intake)
        for chunk in chunks:
            self._in_store(lambda chunk=chunk: intake.take(chunk))  # type: ignore[misc]
            facts.took(intake)
            if before + stream.taken > settings.most_bytes or facts.came > settings.most_rows:
                raise _Enough(
                    f"it sent {facts.came:,} rows in {(before + stream.taken) / 1e6:.0f} MB and was not done: "
                    "stopped reading; run `gua doctor` there"
                )
        self._in_store(lambda: intake.finish(raw_ms=settings.raw_ms))
        facts.took(intake)
        self._whole = True

    def _in_store(self, work: Callable[[], Result]) -> Result:
        with self._attempt.own_work(_OWN_WORK_S):
            return self._puller.in_store(work)
