"""Runs the agent on this machine (`ansible_connection: local`), bounded like a remote one."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Sequence
from typing import IO

from gua_fleet.errors import HostFailure
from gua_fleet.model import Outcome
from gua_fleet.probes.answer import Answer
from gua_fleet.ssh.attempt import Attempt

READ_BYTES = 64 << 10


def ask_local(attempt: Attempt, argv: Sequence[str], *, cap_bytes: int, stdin: bytes = b"") -> Answer:
    """What `argv` prints, run without a shell and given `stdin` (less than a pipe holds) to read.

    Its whole process group dies at the deadline or above the cap.

    Raises HostFailure: it cannot be started, or the deadline passed.
    """
    process = start_local(attempt, argv)
    if isinstance(process, Answer):
        return process
    assert process.stdin is not None  # for the type checker: it was asked for
    with contextlib.suppress(BrokenPipeError), process.stdin:
        process.stdin.write(stdin)
    try:
        return _read(attempt, process, cap_bytes)
    finally:
        kill_group(process)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


def start_local(attempt: Attempt, argv: Sequence[str]) -> subprocess.Popen[bytes] | Answer:
    """The program, started at the head of a process group; an answer in its place where it is not there.

    Raises HostFailure where it cannot be started.
    """
    attempt.stage = "exec"
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except FileNotFoundError:
        return Answer(127, b"", f"{argv[0]}: not found".encode())
    except OSError as exc:
        raise HostFailure(Outcome.AGENT_MISSING, f"{argv[0]} cannot be started: {exc.strerror}") from exc
    attempt.on_cancel(lambda: kill_group(process))
    attempt.stage = "output"
    return process


def _read(attempt: Attempt, process: subprocess.Popen[bytes], cap_bytes: int) -> Answer:
    assert process.stdout is not None  # for the type checker: both were asked for
    assert process.stderr is not None
    outputs: dict[IO[bytes], bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream in outputs:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(attempt.remaining_s()):
                stream = key.fileobj  # type: ignore[assignment]  # only our two streams were registered
                data = os.read(key.fd, READ_BYTES)
                outputs[stream] += data
                if not data:
                    selector.unregister(stream)
            if any(len(output) > cap_bytes for output in outputs.values()):
                return Answer(-1, bytes(outputs[process.stdout]), bytes(outputs[process.stderr]), capped=True)
    return Answer(_exit_status(attempt, process), bytes(outputs[process.stdout]), bytes(outputs[process.stderr]))


def _exit_status(attempt: Attempt, process: subprocess.Popen[bytes]) -> int:
    try:
        return max(-1, process.wait(attempt.remaining_s()))
    except subprocess.TimeoutExpired:
        raise attempt.timeout() from None


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """The process leads its group, so its pid stays ours until it is waited for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
