"""What one command on one host printed, before anything is believed of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """exit_status: of the remote command; -1 when a signal ended it, or when reading was stopped.

    stdout, stderr: bytes as they came, up to the cap. capped: there was more than the cap.
    """

    exit_status: int
    stdout: bytes
    stderr: bytes
    capped: bool = False
