"""Programs that the doctor asks, each for a limited time: what hangs in the driver must not hang the doctor."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from gua.own_program import FOLDER, own_environment

# A killed program is gone in milliseconds, unless a driver call holds it in the kernel.
_REAP_S = 0.3


@dataclass(frozen=True)
class Answer:
    """status: the exit status; None when there was no answer in time, or the program could not be started."""

    status: Optional[int]
    text: str


NO_ANSWER = Answer(None, "")


class Question:
    """A program started now, whose output is waited for later; meanwhile it works beside the checks."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process: Optional[subprocess.Popen[bytes]] = None
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=FOLDER,
                env=own_environment(LC_ALL="C"),
            )

    def answer(self, timeout_s: float) -> Answer:
        """What it said, at most `timeout_s` later. One that did not end is killed, and left if that does not help."""
        process = self._process
        if process is None:
            return NO_ANSWER
        try:
            output, _ = process.communicate(timeout=max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            self._abandon(process)
            return NO_ANSWER
        return Answer(process.returncode, output.decode("utf-8", "backslashreplace"))

    def _abandon(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_S)
        if process.stdout is not None:
            process.stdout.close()


def ask_module(module: str, *arguments: str) -> Question:
    """Ask a program of ours, `python -m MODULE`."""
    return Question([sys.executable, "-m", module, *arguments])
